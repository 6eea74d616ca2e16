"""What is measured, one file a kind. A new one is a file here and one line in begin.py."""
