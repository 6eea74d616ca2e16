"""How fast `flatout lint` goes over Python's standard library, beside `ruff check --select ALL` on the same tree, in turn.

    cargo build --release -p flatout
    pip install -r benches/requirements.txt
    python benches/lint_speed.py [--flatout target/release/flatout] [--files 1200] [--rounds 3]
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def copy_library(to, files):
    """Copies Python files of the standard library; gives their number and lines."""
    library = Path(os.__file__).parent
    found = [path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts][:files]
    lines = 0
    for path in found:
        target = to / path.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        lines += path.read_bytes().count(b"\n")
    return len(found), lines


def timed(command):
    """Seconds by the clock and of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    if code not in (0, 1):
        sys.exit(f"{command[0]} ended with {code}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--flatout", default=root / "target/release/flatout", type=Path)
    parser.add_argument("--files", default=1200, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files, lines = copy_library(Path(folder), arguments.files)
        print(f"{files} files, {lines} lines")
        ruff = Path(sys.executable).parent / "ruff"
        for _ in range(arguments.rounds):
            ours = timed([arguments.flatout, "lint", folder])
            theirs = timed([ruff, "check", "--no-cache", "--select", "ALL", "-q", folder])
            print(f"flatout {ours[0]:.2f} s ({ours[1]:.2f} s CPU)   ruff {theirs[0]:.2f} s ({theirs[1]:.2f} s CPU)   {ours[0] / theirs[0]:.2f}x")


if __name__ == "__main__":
    main()
