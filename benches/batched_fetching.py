"""`loader.batched` against DataLoader with its best number of workers: a TensorDataset of 20 columns, batches of 512.

    flatout run --quiet -- true   # the binary must be built
    python benches/batched_fetching.py --flatout target/release/flatout [--seconds 3] [--rounds 3]

Each arm is a program of its own that only draws batches: alone with 0, 1, 2, 4 workers, and under `flatout run --apply loader.batched=on`
as the program is (no workers). The arms take turns, several rounds; told is each arm's best round. Every arm also sums all columns of
its first epoch, and the sums must be equal.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

COLUMNS, BATCH, ROWS = 20, 512, 100_000


def draw(workers, seconds):
    """In a process of its own: batches per second over whole epochs."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(*(torch.rand(ROWS) for _ in range(COLUMNS)))
    more = {"persistent_workers": True} if workers else {}
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers, **more)
    total = 0.0
    for number, batch in enumerate(loader):
        total += float(sum(column.double().sum() * (number + 1) for column in batch))
    begin, batches = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for batch in loader:
            batches += 1
            if time.perf_counter() - begin >= seconds:
                break
    print(json.dumps({"rate": batches / (time.perf_counter() - begin), "sum": total}))


def measured(before, workers, seconds):
    command = [*before, sys.executable, __file__, "--draw", str(workers), "--seconds", str(seconds)]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(command, env={**os.environ, "FLATOUT_HOME": home}, cwd=home, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flatout")
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if asked.draw is not None:
        return draw(asked.draw, asked.seconds)
    script, binary = os.path.abspath(__file__), os.path.abspath(asked.flatout)
    globals()["__file__"] = script
    batched = [binary, "run", "--quiet", "--no-stacks", "--apply", "loader.batched=on", "--"]
    arms = {f"DataLoader, {workers} workers": ([], workers) for workers in (0, 1, 2, 4)}
    arms["loader.batched"] = (batched, 0)
    rates, sums = dict.fromkeys(arms, 0.0), set()
    for _ in range(asked.rounds):
        for name, (before, workers) in arms.items():
            found = measured(before, workers, asked.seconds)
            rates[name] = max(rates[name], found["rate"])
            sums.add(found["sum"])
    assert len(sums) == 1, sums
    best = max(rate for name, rate in rates.items() if name != "loader.batched")
    print("| arm | batches/s | against the best DataLoader |\n| --- | --- | --- |")
    for name, rate in rates.items():
        print(f"| {name} | {rate:.0f} | {rate / best:.1f}× |")


main()
