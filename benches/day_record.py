"""Writes the record of a training of 24 hours at one sample a second, one GPU and four workers, to measure `flatout report` on.

    python benches/day_record.py /tmp/day
    /usr/bin/time -v flatout report /tmp/day --html /tmp/day.html
"""

import json
import math
import pathlib
import random
import sys

SECONDS = 86_400


def gpu(second):
    waiting = second % 600 < 30
    return {
        "util": 0.05 if waiting else round(0.9 + 0.1 * random.random(), 2),
        "mem_used_bytes": 40_000_000_000 + second * 1000,
        "power_w": round(150 + (0 if waiting else 400) + 30 * random.random(), 1),
        "temp_c": round(55 + 10 * math.sin(second / 900)),
        "sm_activity": round(random.random(), 3),
        "tensor_activity": round(random.random() * 0.4, 3),
    }


def steps(second):
    phases = {
        "data": {"ms": round(200 * random.random(), 3), "hist": {"160": 6, "168": 4}},
        "compute": {"ms": round(700 + 50 * random.random(), 3), "hist": {"209": 10}},
        "sync": {"ms": round(20 * random.random(), 3), "hist": {"170": 10}},
    }
    return {
        "t": second + 0.01,
        "dt": 1.0,
        "steps": 10,
        "samples": 5120,
        "phases": phases,
        "step_hist": {str(200 + random.randrange(8)): 10},
        "loss": round(2 / math.log(second + 3) + 0.05 * random.random(), 5),
    }


def main(folder):
    random.seed(0)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    info = {"schema": 1, "id": "day", "name": "day", "kind": "run", "started_unix_ms": 1_794_712_320_000, "interval_s": 1.0}
    info["gpus"] = {"0": {"name": "NVIDIA H200", "mem_total_bytes": 150_754_820_096}}
    info["exit"] = {"t": SECONDS + 1.0, "code": 0}
    (folder / "run.json").write_text(json.dumps(info))
    with open(folder / "samples.jsonl", "w") as samples, open(folder / "steps.jsonl", "w") as ticks:
        for second in range(1, SECONDS + 1):
            sample = {"t": float(second), "gpus": {"0": gpu(second)}, "host": {"cpu_util": round(random.random(), 3)}}
            sample["processes"] = {str(pid): {"cpus": round(random.random(), 2)} for pid in range(100, 105)}
            if second == 1:
                sample["gpus"]["0"].update({"power_limit_w": 700.0, "sm_clock_mhz": 1980.0, "mem_clock_mhz": 3201.0})
            samples.write(json.dumps(sample, separators=(",", ":")) + "\n")
            ticks.write(json.dumps(steps(second), separators=(",", ":")) + "\n")
    with open(folder / "events.jsonl", "w") as events:
        for number in range(1, SECONDS // 600):
            events.write(json.dumps({"t": number * 600.0, "kind": "epoch", "number": number, "duration_ms": 600_000.0}) + "\n")
            events.write(json.dumps({"t": number * 600.0 + 30, "kind": "eval", "duration_ms": 30_000.0}) + "\n")
    for name in ("facts", "stacks"):
        (folder / f"{name}.jsonl").touch()


if __name__ == "__main__":
    main(sys.argv[1])
