#!/usr/bin/env python3
"""Take out of records what belongs to the machine they were made on.

    faults/lines/anonymous.py FOLDER…

Each FOLDER is a record that measure.py made of faults/lines/<name> (or of faults/lines/holdout/<name>). Paths of the program become
faults/lines/<name>/train.py, those of libraries /site-packages and /lib/python; names of hosts and GPUs, timelines and what was printed go.
"""

import json
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent


def main(folders):
    for folder in map(pathlib.Path, folders):
        program = f"faults/lines/{folder.resolve().parent.relative_to(here)}"
        for name in ("timeline.jsonl", "terminal.txt"):
            (folder / name).unlink(missing_ok=True)
        for path in folder.glob("*.json*"):
            text = path.read_text()
            text = re.sub(r"/tmp/tmp[a-z0-9_]+/train\.py", f"{program}/train.py", text)
            text = re.sub(r'"train\.py"', f'"{program}/train.py"', text)
            text = re.sub(r'"/[^"]*/bin/python3"', '"python3"', text)
            text = re.sub(r'"folder": "[^"]*"', '"folder": "."', text)
            text = re.sub(r'("host": \{\s*"name": )"[^"]*"', r'\1"host"', text)
            text = re.sub(r'"kernel": "[0-9][^"]*"', '"kernel": "linux"', text)
            text = re.sub(r"/[^ \":]*/bin/python3", "python3", text)
            text = re.sub(r"GPU-[0-9a-f-]{36}", "GPU-0", text)
            text = re.sub(r'"/tmp/tmp[a-z0-9_]+/', '"/tmp/', text)
            text = re.sub(r"/tmp/tmp[a-z0-9_]+", "/tmp", text)
            text = re.sub(r"\(/[^():]*/(?:site|dist)-packages/", "(/site-packages/", text)
            text = re.sub(r"\(/tmp/site/", "(/site-packages/", text)
            text = re.sub(r"\(/[^():]*/lib/python", "(/lib/python", text)
            text = re.sub(r'"/[^":]*/(?:site|dist)-packages/', '"/site-packages/', text)
            text = re.sub(r'"/tmp/site/', '"/site-packages/', text)
            path.write_text(text)
            path.chmod(0o644)
        if (folder / "stacks.jsonl").exists():
            shorten(folder / "stacks.jsonl")


def shorten(path):
    """What was imported before the first step fills most of the file: of the samples without a phase, each line keeps its three largest, and all
    that one in two hundred samples saw."""
    ticks = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    for tick in ticks:
        all_ms = sum(stack["ms"] for stack in tick["stacks"])
        early = sorted((stack for stack in tick["stacks"] if not stack.get("phase") and not stack.get("worker")), key=lambda stack: -stack["ms"])
        dropped = {id(stack) for stack in early[3:] if stack["ms"] < all_ms / 200}
        tick["stacks"] = [stack for stack in tick["stacks"] if id(stack) not in dropped]
    path.write_text("".join(json.dumps(tick, separators=(",", ":"), ensure_ascii=False) + "\n" for tick in ticks))
    # As flatout compresses older parts itself.
    subprocess.run(["zstd", "-q", "-12", "--rm", "-f", str(path), "-o", str(path.with_name("stacks.0000.jsonl.zst"))], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
