#!/usr/bin/env python3
"""Run programs labeled by line under `flatout run`, keep their records, and measure what their fix gains.

    faults/lines/measure.py --programs FOLDER --out FOLDER --device cpu|gpu [--fixed] [--seconds N] [--slots N] [--cpus N]

Each folder below FOLDER with a `label.toml` is a program. `train.py` runs under `flatout run` and its record goes to
OUT/<name>/record (`record-gpu` with a GPU); with --fixed, `fixed.py` runs as well, into `fixed`. OUT/speeds.json has the steps per second
of both, over the steady part. Programs stop themselves after a number of seconds; --seconds replaces that number, 18, in the copy that runs.

On a CPU, --slots programs run side by side with --cpus CPUs each and CUDA hidden. On a GPU they run one by one, on the CPUs from --first on.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import queue

LIMIT = re.compile(r"\b18(\.0)?\b")
TIMED = re.compile(r"monotonic|perf_counter|time\(|seconds|limit|budget|LIMIT|SECONDS|deadline|duration", re.I)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--flatout", default="flatout")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--skip-train", action="store_true")
    options = parser.parse_args()
    jobs = queue.Queue()
    for label in sorted(options.programs.glob("*/label.toml")):
        name = label.parent.name
        if options.only and name not in options.only:
            continue
        if not options.skip_train:
            jobs.put((label.parent, "train.py"))
        if options.fixed and (label.parent / "fixed.py").exists():
            jobs.put((label.parent, "fixed.py"))
    speeds, lock = {}, threading.Lock()

    def work(slot):
        while True:
            try:
                folder, script = jobs.get_nowait()
            except queue.Empty:
                return
            speed = run(options, folder, script, slot)
            with lock:
                speeds.setdefault(folder.name, {})[script] = speed
                (options.out / f"speeds-{options.device}.json").write_text(json.dumps(speeds, indent=1, sort_keys=True))
                print(folder.name, script, json.dumps(speed), flush=True)

    options.out.mkdir(parents=True, exist_ok=True)
    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(options.slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(options, folder, script, slot):
    with tempfile.TemporaryDirectory() as temporary:
        home = pathlib.Path(temporary)
        source = (folder / script).read_text()
        if options.seconds:
            lines = source.split("\n")
            source = "\n".join(LIMIT.sub(str(options.seconds), line) if TIMED.search(line) else line for line in lines)
        # Findings name train.py: the repaired program keeps that name, too.
        (home / "train.py").write_text(source)
        first = options.first + slot * options.cpus
        cpus = f"{first}-{first + options.cpus - 1}"
        environment = {**os.environ, "FLATOUT_HOME": str(home / "home"), "HF_HUB_OFFLINE": "1"}
        if options.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        command = ["taskset", "-c", cpus, options.flatout, "run", "--name", "run", "--", sys.executable, "-W", "ignore", "train.py"]
        try:
            done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=150)
            code, errors = done.returncode, done.stderr[-2500:]
        except subprocess.TimeoutExpired:
            code, errors = None, "timed out"
        records = sorted(path.parent for path in home.rglob("run.json"))
        kind = "fixed" if script == "fixed.py" else "record" if options.device == "cpu" else "record-gpu"
        target = options.out / folder.name / kind
        if records:
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["rm", "-rf", str(target)])
            subprocess.run(["cp", "-r", str(records[-1]), str(target)])
            (target / "terminal.txt").write_text(errors)
        return {"exit": code, "steps_per_s": steady(target) if records else None} | ({"errors": errors[-600:]} if code else {})


def steady(record):
    """Steps per second over the later two thirds of the ticks with steps."""
    path = record / "steps.jsonl"
    ticks = [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []
    ticks = [tick for tick in ticks if tick.get("steps")]
    ticks = ticks[max(len(ticks) // 3, 1) : -1] or ticks[1:]
    seconds = sum(tick["dt"] for tick in ticks)
    return round(sum(tick["steps"] for tick in ticks) / seconds, 3) if seconds else None


if __name__ == "__main__":
    main()
