#!/usr/bin/env python3
"""`flatout tune` on every program of examples/, faults/ and benches/: no failure may be caused by tune.

    benches/tune/walk.py [--flatout BINARY] [--python PYTHON] [--jobs 2] [--only TEXT] [--out walk.jsonl]

Each program runs in a copy of its folder, with a short search. A search that fails is held against the program alone: where that
fails as well, the failure is the program's own; one that ends after a few steps cannot be measured. Exits with 1 when a failure is
neither. Results that --out has already are kept, so an interrupted walk goes on. Programs that need a GPU are left out without one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# On two cores that many others use, a program took two minutes to its first step.
PATIENCE_S = 240
LONGEST_S = 900
ALONE_S = 240


def needs_gpu(path):
    label = path.parent / "label.toml"
    return label.exists() and any(line.replace(" ", "") == 'needs="gpu"' for line in label.read_text().splitlines())


def programs():
    folders = ["faults/*", "faults/holdout/*", "faults/lines/*", "faults/lines/holdout/*"]
    found = [path for folder in folders for name in ("train.py", "fixed.py") for path in ROOT.glob(f"{folder}/{name}")]
    found += [path for path in (ROOT / "examples").glob("*.py") if "optimizer" in path.read_text()]
    found += list((ROOT / "benches/tune/programs").glob("*.py"))
    return sorted(path for path in found if pathlib.Path("/dev/nvidiactl").exists() or not needs_gpu(path))


def run(command, folder, seconds):
    """Exit code, stdout and stderr; None for a command that ran out of time."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLATOUT_")}
    # The lock of a search is among the temporary files: two searches beside each other need two of them.
    (folder / "tmp").mkdir(exist_ok=True)
    # Threads that wait for each other come to a stand on a machine with more threads than cores: 2.8 steps/s instead of 27 in one case.
    environment.setdefault("OMP_NUM_THREADS", "1")
    environment.update(TMPDIR=str(folder / "tmp"), FLATOUT_HOME=str(folder / "home"), PYTHONPATH=str(ROOT / "python"))
    started = subprocess.Popen(
        command, cwd=folder / "program", env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        out, errors = started.communicate(timeout=seconds)
        return started.returncode, out.decode(errors="replace"), errors.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGTERM)
        try:
            out, errors = started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            out, errors = started.communicate()
        return None, out.decode(errors="replace"), errors.decode(errors="replace")


def walk(path, options):
    name = str(path.relative_to(ROOT))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="walk-") as place:
        place = pathlib.Path(place)
        ignore = shutil.ignore_patterns("record*", "__pycache__")
        shutil.copytree(path.parent, place / "program", ignore=ignore)
        search = ["tune", "--lang", "en", "--json", "--budget", options.budget, "--max-trials", "4", "--trial-seconds", "1", "--patience", f"{PATIENCE_S}s"]
        code, out, errors = run([options.flatout, *search, "--", options.python, path.name], place, LONGEST_S)
        row = {"program": name, "code": code, "seconds": round(time.monotonic() - began, 1)}
        try:
            told = json.loads(out)
            row["changed"], row["gain"] = told["changed"], round(told["gain"]["mean"], 2)
            row["trials"] = [
                {"changes": trial["changes"], "verdict": trial["verdict"], "why": (trial.get("why") or {}).get("en", "")} for trial in told["trials"]
            ]
            row["left"] = [[one["rule"], [f"{place['file']}:{place['line']}" for place in one.get("places", [])[:1]]] for one in told["left"]]
        except (ValueError, KeyError) as error:
            row["unreadable"] = repr(error)
        if code != 0 or "unreadable" in row:
            row["errors"] = errors[-1500:]
            alone, _, said = run([options.python, path.name], place, ALONE_S)
            row["alone"], row["alone_errors"] = alone, said[-500:]
        row["verdict"] = verdict(row)
        return row


def verdict(row):
    if row["code"] == 0:
        return "works"
    if row["alone"] not in (0, None):
        return "fails alone"
    if "too soon to measure" in row["errors"] or "no training step was seen" in row["errors"]:
        return "too few steps"
    return "fails under tune"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--flatout", default=str(ROOT / "target/release/flatout"))
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--budget", default="20s")
    options.add_argument("--only", default="", help="programs whose path contains this")
    options.add_argument("--skip", default="", help="and not this")
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path("walk.jsonl"))
    options = options.parse_args()
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    rows = {row["program"]: row for row in known}
    wanted = [path for path in programs() if options.only in str(path) and not (options.skip and options.skip in str(path))]
    left = [path for path in wanted if str(path.relative_to(ROOT)) not in rows]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, options.out.open("a") as out:
        for row in pool.map(lambda path: walk(path, options), left):
            rows[row["program"]] = row
            print(json.dumps(row), file=out, flush=True)
            print(f"{row['verdict']:16} {row['seconds']:6} s  {row.get('gain', '–'):>6}  {row['program']}", flush=True)
    chosen = [rows[str(path.relative_to(ROOT))] for path in wanted]
    for word in sorted({row["verdict"] for row in chosen}):
        print(f"{word}: {sum(row['verdict'] == word for row in chosen)}")
    return any(row["verdict"] == "fails under tune" for row in chosen)


if __name__ == "__main__":
    sys.exit(main())
