#!/bin/bash
# As its user runs it: with a profile of a few steps, which is where a kernel's length comes from.
exec "$1" "$2" --profile "${@:3}"
