#!/usr/bin/env python3
"""`flatout run --auto` against the program as it is and against the best fixed setting, in the same time.

    benches/auto.py --flatout target/release/flatout --python PYTHON --out FOLDER [--minutes 7] [--only tune|faults|gpu-faults] [NAME…]

Two bars: every program of `faults/` and `benches/tune/programs` runs at 0.98× of itself or faster with `--auto`, and the programs of
`benches/tune` reach 80% of what the best fixed setting of the same knobs gives.

Each program runs under plain `flatout run` and under `--auto`, interleaved (plain, auto, then auto, plain), on CPUs of its own; those of
`benches/tune` also with fixed settings (`--apply`). Steps are counted from the first one on, by the records. CPU programs run on lanes of two
CPUs each, several at a time; programs that use the GPU run one at a time on CPUs of their own. Nothing new begins after --minutes.

FOLDER/auto.jsonl has one line per run, and FOLDER/auto.md the tables. Called again with the same folder it goes on where it stopped, and
`--table` only writes the tables. Run it on an idle machine: on a busy one only the CPU time per step means something.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import queue
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BAR, BEST_BAR = 0.98, 0.8
SEEDS = ["images_cnn", "stocks_lstm", "returns_gru"]
TUNE = SEEDS + ["captcha_cnn", "interactions_mlp", "sensors_autoencoder", "text_transformer", "augmented_cnn"]
# Those whose items are plain indexing.
PLAIN_DATA = ["returns_gru", "interactions_mlp", "sensors_autoencoder"]
# A program of `faults` trains for twelve seconds; starting Python and PyTorch comes on top.
START_S = 60
# The bar's run: what shorter runs are projected to, with the rate of their last third.
WHOLE_S = 120


class Job:
    def __init__(self, kind, name, program, way, number, seconds):
        self.kind, self.name, self.program, self.way, self.number, self.seconds = kind, name, program, way, number, seconds
        self.key = [kind, name, way, number]


def faults(needs, names):
    found = []
    for folder in ("faults", "faults/holdout", "faults/lines", "faults/lines/holdout"):
        for label in ROOT.glob(f"{folder}/*/label.toml"):
            program, needed = label.parent / "train.py", re.search(r'^needs *= *"(\w+)"', label.read_text(), re.M)
            # One with a `machine.sh` wants another machine than this one.
            if program.exists() and needed and needed[1] == needs and not (label.parent / "machine.sh").exists():
                found.append((label.parent.name, program))
    # In an order that says nothing about them: a walk that is stopped has seen a fair part.
    found.sort(key=lambda one: hashlib.sha256(one[0].encode()).hexdigest())
    return [one for one in found if not names or one[0] in names]


def fixed(name, cpus, gpu):
    """Fixed settings of the knobs that `--auto` turns, the likeliest ones for the program."""
    more = ",loader.pin_memory=on" if gpu else ""
    workers = [f"loader.num_workers={count},loader.persistent_workers=on{more}" for count in sorted({max(cpus // 2, 1), cpus})]
    return ["loader.batched=on", workers[-1]] if name in PLAIN_DATA else workers


def jobs(options, gpu, lane_cpus):
    """All runs, the most important first: by lane, "gpu" or "cpu"."""
    found = {"gpu": [], "cpu": []}
    order = [("plain", "auto"), ("auto", "plain")]
    wanted = lambda kind: not options.only or kind in options.only  # noqa: E731
    if wanted("tune"):
        lane = "gpu" if gpu else "cpu"
        names = [name for name in TUNE if not options.names or name in options.names]
        for number in range(options.rounds):
            for name in names:
                ways = list(order[number % 2]) + ([f"fixed:{one}" for one in fixed(name, lane_cpus[lane], gpu)] if number == 0 else [])
                for way in ways:
                    seconds = options.seconds if way == "auto" else min(options.seconds, options.others)
                    found[lane].append(Job("tune", name, ROOT / f"benches/tune/programs/{name}.py", way, number, seconds))
    for kind, needs, lane in (("faults", "cpu", "cpu"), ("gpu-faults", "gpu", "gpu")):
        if wanted(kind) and (needs == "cpu" or gpu):
            chosen = faults(needs, options.names)
            for number in range(options.rounds):
                for name, program in chosen:
                    found[lane] += [Job(kind, name, program, way, number, options.seconds) for way in order[number % 2]]
    return found


def run(job, options, cpus, gpu):
    """One run: steps, seconds and CPU time."""
    kinds = {"plain": [], "auto": ["--auto"]}.get(job.way) or (["--apply", job.way.removeprefix("fixed:")] if job.way.startswith("fixed:") else [])
    with tempfile.TemporaryDirectory(prefix="auto-", ignore_cleanup_errors=True) as home:
        (pathlib.Path(home) / "work").mkdir()
        command = [options.flatout, "run", "--quiet", *kinds, "--", options.python, str(job.program)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FLATOUT_")}
        environment.update(FLATOUT_HOME=home, TMPDIR=home)
        if not gpu:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        errors = open(pathlib.Path(home, "errors"), "w+")
        started = subprocess.Popen(
            command,
            cwd=f"{home}/work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None,
        )
        code, cpu_s = wait(started, home, job.seconds)
        errors.seek(0)
        row = {"kind": job.kind, "name": job.name, "way": job.way, "round": job.number, "code": code, "cpu_s": cpu_s, "cpus": len(cpus or ())}
        row.update(read(home))
        if row["steps"] is None:
            row["errors"] = errors.read()[-800:]
        return row


def wait(started, home, seconds):
    """Ends the run so many seconds after its first step; gives the exit code and the CPU time of the whole tree."""
    begun, first, limit = time.monotonic(), None, None
    while True:
        pid, status, usage = os.wait4(started.pid, os.WNOHANG)
        if pid:
            started.returncode = os.waitstatus_to_exitcode(status)
            return started.returncode, round(usage.ru_utime + usage.ru_stime, 3)
        now = time.monotonic()
        if first is None and stepped(home):
            first = now
        if limit is None and ((first is not None and now - first > seconds) or now - begun > seconds + START_S):
            # As the service manager of a job would.
            os.kill(started.pid, signal.SIGTERM)
            limit = now + 30
        elif limit is not None and now > limit:
            os.killpg(started.pid, signal.SIGKILL)
            limit = now + 1e9
        time.sleep(0.1)


def stepped(home):
    for file in pathlib.Path(home).glob("runs/*/steps.jsonl"):
        return '"steps":' in file.read_text(errors="replace").replace('"steps":0', "")
    return False


def lines_of(path):
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def read(home):
    """What the record says."""
    records = list(pathlib.Path(home).glob("runs/*"))
    ticks = lines_of(records[0] / "steps.jsonl") if records else []
    facts = lines_of(records[0] / "facts.jsonl") if records else []
    own = [fact["value"] for fact in facts if fact["key"].startswith("auto.") and isinstance(fact["value"], dict)]
    row = {
        "kept": [one["setting"] for one in own if one.get("state") == "kept"],
        "tried": [one["setting"] for one in own if one.get("state") == "tried"],
        "spent_s": next((one["spent_s"] for one in own if "spent_s" in one), None),
        "applied": [fact["key"].removeprefix("apply.") for fact in facts if fact["key"].startswith("apply.") and fact["value"] is True],
    }
    begun = next((number for number, tick in enumerate(ticks) if tick.get("steps")), None)
    ended = next((number for number in range(len(ticks) - 1, -1, -1) if ticks[number].get("steps")), None)
    if begun is None or ended - begun < 3:
        return {**row, "steps": None, "seconds": None, "late": None}
    # From the end of the first tick with steps to the end of the last one.
    steps, seconds = sum(tick.get("steps", 0) for tick in ticks[begun + 1 : ended + 1]), ticks[ended]["t"] - ticks[begun]["t"]
    third = ended - max((ended - begun) // 3, 2)
    late_s = ticks[ended]["t"] - ticks[third]["t"]
    late = sum(tick.get("steps", 0) for tick in ticks[third + 1 : ended + 1]) / late_s if late_s > 0 else None
    return {**row, "steps": steps, "seconds": round(seconds, 2), "late": late}


def rate(row):
    return row["steps"] / row["seconds"] if row.get("steps") and row.get("seconds") else None


def cpu_per_step(row):
    return row["cpu_s"] / row["steps"] if row.get("steps") else None


def projected(row):
    """Steps of a whole run, by the rate of the last third."""
    found = rate(row)
    if found is None or not row.get("late") or row["seconds"] >= WHOLE_S:
        return found
    return (row["steps"] + row["late"] * (WHOLE_S - row["seconds"])) / WHOLE_S


def of(rows, kind, name, way):
    return [row for row in rows if (row["kind"], row["name"], row["way"]) == (kind, name, way) and rate(row)]


def paired(rows, kind, name, figure, under="auto", over="plain"):
    """The ratio of each round."""
    by = {way: {row["round"]: figure(row) for row in of(rows, kind, name, way)} for way in (under, over)}
    return [by[under][number] / by[over][number] for number in sorted(by[under]) if by[over].get(number)]


def spread(values, digits=2):
    if not values:
        return "–"
    return f"{statistics.mean(values):.{digits}f}" + (f" ({min(values):.{digits}f}–{max(values):.{digits}f})" if len(values) > 1 else "")


def table(rows, about):
    """Both tables as Markdown, and the programs below a bar."""
    lines, below = [f"# `flatout run --auto`\n\n{about}\n"], []
    tuned = [name for name in TUNE if any(row["kind"] == "tune" and row["name"] == name for row in rows)]
    if tuned:
        lines += ["## Programs of `benches/tune`\n", "| program | plain, steps/s | `--auto` | best fixed | best fixed setting | auto / plain | auto / best fixed | projected to 120 s | kept |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
        for name in tuned:
            autos, plains = of(rows, "tune", name, "auto"), of(rows, "tune", name, "plain")
            ways = {row["way"] for row in rows if row["kind"] == "tune" and row["name"] == name and row["way"].startswith("fixed:")}
            # The program as it is counts as one of the fixed settings.
            points = {way: statistics.mean(map(rate, found)) for way in [*ways, "plain"] if (found := of(rows, "tune", name, way))}
            if not autos or not plains:
                lines.append(f"| {name} | – | – | – | | | | | too few steps |")
                continue
            best = max(points, key=points.get)
            now, whole = statistics.mean(map(rate, autos)), statistics.mean(map(projected, autos))
            ratios = paired(rows, "tune", name, rate)
            kept = sorted({setting for row in autos for setting in row["kept"]})
            cells = [name, f"{points['plain']:.3g}", f"{now:.3g}", f"{points[best]:.3g}", best.removeprefix("fixed:"), spread(ratios)]
            lines.append("| " + " | ".join([*cells, f"{now / points[best]:.2f}", f"{whole / points[best]:.2f}", ", ".join(kept) or "nothing"]) + " |")
            if ratios and statistics.mean(ratios) < BAR:
                below.append((statistics.mean(ratios), name))
            if whole / points[best] < BEST_BAR:
                below.append((whole / points[best], f"{name} against {best.removeprefix('fixed:')}"))
        lines.append("")
    for kind, title in (("faults", "CPU programs of `faults/`"), ("gpu-faults", "GPU programs of `faults/`")):
        names = sorted({row["name"] for row in rows if row["kind"] == kind})
        if not names:
            continue
        lines += [f"## {title}\n", "| program | plain, steps/s | `--auto` | ratio | CPU time per step, ratio | spent on trials | tried | kept |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for name in names:
            autos, plains, ratios = of(rows, kind, name, "auto"), of(rows, kind, name, "plain"), paired(rows, kind, name, rate)
            if not ratios:
                lines.append(f"| {name} | – | – | – | – | – | | {missing(rows, kind, name)} |")
                continue
            kept, tried = (sorted({one for row in autos for one in row[key]}) for key in ("kept", "tried"))
            spent = [row["spent_s"] for row in autos if row.get("spent_s") is not None]
            cells = [name, f"{statistics.mean(map(rate, plains)):.3g}", f"{statistics.mean(map(rate, autos)):.3g}", spread(ratios)]
            cells += [spread(paired(rows, kind, name, cpu_per_step)), f"{max(spent):.2f} s" if spent else "–", ", ".join(tried) or "nothing", ", ".join(kept) or "nothing"]
            lines.append("| " + " | ".join(cells) + " |")
            if statistics.mean(ratios) < BAR:
                below.append((statistics.mean(ratios), name))
        lines.append("")
    below.sort()
    lines.append("Below the bars: " + (", ".join(f"{name} ({ratio:.2f})" for ratio, name in below) or "none") + ".")
    return "\n".join(lines) + "\n", below


def missing(rows, kind, name):
    """Why a program has no ratio."""
    own = [row for row in rows if row["kind"] == kind and row["name"] == name and not rate(row)]
    text = (own[0].get("errors") or "").strip().splitlines() if own else []
    found = next((line for line in reversed(text) if "Error" in line), "")
    return (found[:80].replace("|", "/") or "too few steps") if own else "not run twice"


def has_gpu(python):
    done = subprocess.run([python, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    return done.stdout.strip() == "True"


def lanes(gpu, lane_size, most):
    """CPUs of the GPU's lane, and of each CPU lane."""
    cpus = sorted(os.sched_getaffinity(0))
    for_gpu = cpus[: len(cpus) // 2] if gpu and len(cpus) >= 4 else cpus if gpu else []
    left = [cpu for cpu in cpus if cpu not in for_gpu] or cpus
    made = [set(left[at : at + lane_size]) for at in range(0, len(left) - lane_size + 1, lane_size)] or [set(left)]
    return set(for_gpu), made[:most] if most else made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these programs")
    parser.add_argument("--flatout", default=str(ROOT / "target/release/flatout"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=7.0, help="nothing new begins after that")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a run with --auto, from its first step on")
    parser.add_argument("--others", type=float, default=7.0, help="of the other runs of benches/tune")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="*", choices=["tune", "faults", "gpu-faults"])
    parser.add_argument("--lane", type=int, default=2, help="CPUs of a CPU program")
    parser.add_argument("--jobs", type=int, default=0, help="CPU programs at a time; 0: as many as there are CPUs for")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    options = parser.parse_args()
    options.flatout = os.path.abspath(options.flatout)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "auto.jsonl"
    rows = lines_of(path)
    until, lock = time.monotonic() + options.minutes * 60, threading.Lock()
    if not options.table:
        gpu = has_gpu(options.python)
        for_gpu, for_cpu = lanes(gpu, options.lane, options.jobs)
        found = jobs(options, gpu, {"gpu": len(for_gpu) or 1, "cpu": len(for_cpu[0])})
        known = [[row["kind"], row["name"], row["way"], row["round"]] for row in rows]

        def work(lane, cpus, left):
            while time.monotonic() < until:
                try:
                    pair = left.get_nowait()
                except queue.Empty:
                    return
                for job in pair:
                    if time.monotonic() > until:
                        return
                    row = run(job, options, cpus, lane == "gpu")
                    with lock:
                        rows.append(row)
                        with path.open("a") as out:
                            print(json.dumps(row), file=out, flush=True)
                        print(f"{job.kind} {job.name} {job.way} #{job.number}: {rate(row) or float('nan'):.3g} steps/s {' '.join(row['kept'])}", flush=True)

        with concurrent.futures.ThreadPoolExecutor(1 + len(for_cpu)) as pool:
            waiting = []
            for lane, sets in (("gpu", [for_gpu]), ("cpu", for_cpu)):
                left = queue.Queue()
                for pair in pairs([job for job in found[lane] if job.key not in known]):
                    left.put(pair)
                waiting += [pool.submit(work, lane, cpus, left) for cpus in sets]
            for one in waiting:
                one.result()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    about = f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, load average at the end {load}. Runs of {options.seconds:g} s (`--auto`) and {options.others:g} s (others of `benches/tune`); programs of `faults/` train for about 12 s. Ratios: mean over rounds (lowest–highest)."
    text, below = table(rows, about)
    (options.out / "auto.md").write_text(text)
    print("\n" + text)
    return bool(below)


def pairs(found):
    """Runs of one program and round stay together and in order: what is compared ran on the same CPUs, one after the other."""
    groups = {}
    for job in found:
        groups.setdefault((job.kind, job.name, job.number), []).append(job)
    return list(groups.values())


if __name__ == "__main__":
    sys.exit(main())
