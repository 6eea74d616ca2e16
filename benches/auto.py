"""`flatout run --auto` against the program as it is: steps in the same time.

    python benches/auto.py --flatout target/release/flatout [--python PYTHON] [--seconds 60] [--needs cpu|gpu] [--rounds 2] [NAME…]

Every program of `faults/` (or the named ones, or files) runs for so many seconds under plain `flatout run` and under `--auto`, in turn. Both
are ended the same way (SIGTERM). Steps are counted from the first one on, by the records; the best round of each counts. Printed: a
table with the ratio and the changes that were kept, then the lowest ratio. The bar is 0.98: below it the program is named and the exit
code is 1. Run it on an idle machine; with `--needs gpu` on one with a GPU.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BAR = 0.98


def programs(names, needs):
    for label in sorted([*ROOT.glob("faults/*/label.toml"), *ROOT.glob("faults/holdout/*/label.toml")]):
        program = label.parent / "train.py"
        needed = re.search(r'^needs *= *"(\w+)"', label.read_text(), re.M)
        # One with a `machine.sh` wants another machine than this one.
        fits = needed and needed[1] == needs and not (label.parent / "machine.sh").exists()
        if program.exists() and ((label.parent.name in names) if names else fits):
            yield label.parent.name, program
    for name in names:
        if name.endswith(".py"):
            yield pathlib.Path(name).stem, pathlib.Path(name).resolve()


def ran(binary, python, program, seconds, auto):
    """Steps per second from the first step on, and the changes that were kept."""
    with tempfile.TemporaryDirectory() as home:
        command = [binary, "run", "--quiet", *(["--auto"] if auto else []), "--", python, str(program)]
        done = subprocess.Popen(command, cwd=home, env={**os.environ, "FLATOUT_HOME": home}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            done.wait(seconds)
        except subprocess.TimeoutExpired:
            done.send_signal(signal.SIGTERM)
            try:
                done.wait(30)
            except subprocess.TimeoutExpired:
                done.kill()
                done.wait()
        (record,) = pathlib.Path(home, "runs").iterdir()
        steps = [json.loads(line) for line in (record / "steps.jsonl").read_text().splitlines() if line.strip()] if (record / "steps.jsonl").exists() else []
        facts = [json.loads(line) for line in (record / "facts.jsonl").read_text().splitlines() if line.strip()] if (record / "facts.jsonl").exists() else []
    kept = [fact["value"]["setting"] for fact in facts if fact["key"].startswith("auto.") and fact["value"].get("state") == "kept"]
    begun = next((number for number, tick in enumerate(steps) if tick.get("steps")), None)
    if begun is None or begun + 2 > len(steps):
        return None, kept
    counted = sum(tick.get("steps", 0) for tick in steps[begun + 1 :])
    return counted / (steps[-1]["t"] - steps[begun]["t"]), kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--flatout", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--needs", default="cpu", choices=["cpu", "gpu"])
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    binary, below = os.path.abspath(asked.flatout), []
    print("| program | steps/s alone | with --auto | ratio | kept |\n| --- | --- | --- | --- | --- |")
    for name, program in programs(asked.names, asked.needs):
        best, kept = {False: 0.0, True: 0.0}, []
        for _ in range(asked.rounds):
            for auto in (False, True):
                rate, found = ran(binary, asked.python, program, asked.seconds, auto)
                best[auto], kept = max(best[auto], rate or 0.0), found or kept
        if not best[False] or not best[True]:
            print(f"| {name} | – | – | – | too few steps |", flush=True)
            continue
        ratio = best[True] / best[False]
        below += [(ratio, name)] if ratio < BAR else []
        print(f"| {name} | {best[False]:.3g} | {best[True]:.3g} | {ratio:.2f} | {', '.join(kept) or 'nothing'} |", flush=True)
    print(f"\nBelow {BAR}: " + (", ".join(f"{name} ({ratio:.2f})" for ratio, name in sorted(below)) or "none"))
    sys.exit(bool(below))


main()
