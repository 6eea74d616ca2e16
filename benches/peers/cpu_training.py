"""Training steps a second on the CPU, flatout's engine and PyTorch side by side: rounds alternate, so both meet the same machine.

    cargo build --release -p flatout-engine --example cpu_bench
    python benches/peers/cpu_training.py [--only lstm] [--rounds 5] [--seconds 1.5] [--output FILE]

Both sides: data resident in memory, gather of the batch, forward, MSE, backward, clip at norm 1, AdamW, f32, the same threads.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTITIES, DAYS, FEATURES, ROWS = 500, 400, 20, 50_000

# kind, hidden, layers, steps, batch
CASES = [
    ("lstm", 256, 3, 60, 64),
    ("lstm", 256, 3, 60, 256),
    ("lstm", 256, 3, 60, 512),
    ("lstm", 128, 2, 30, 128),
    ("lstm", 64, 2, 30, 64),
    ("gru", 256, 3, 60, 256),
    ("gru", 64, 2, 30, 64),
    ("mlp", 1024, 4, 1, 512),
    ("mlp", 256, 3, 1, 512),
    ("cnn", 32, 4, 128, 32),
    ("cnn", 16, 3, 64, 64),
]


class Sequence(nn.Module):
    def __init__(self, cell, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(ENTITIES, 64)
        self.rnn = cell(FEATURES + 64, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, entity):
        beside = self.embedding(entity)[:, None, :].expand(-1, x.shape[1], -1)
        return self.head(self.rnn(torch.cat([x, beside], dim=2))[0][:, -1])


class Tabular(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        widths = [128] + [hidden] * layers
        parts = sum([[nn.Linear(a, b), nn.ReLU()] for a, b in zip(widths, widths[1:])], [])
        self.stack = nn.Sequential(*parts, nn.Linear(hidden, 1))

    def forward(self, x, _):
        return self.stack(x)


class Pictures(nn.Module):
    def __init__(self, filters, layers):
        super().__init__()
        widths = [1] + [filters << layer for layer in range(layers)]
        parts = [[nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)] for a, b in zip(widths, widths[1:])]
        self.stack, self.head = nn.Sequential(*sum(parts, [])), nn.Linear(widths[-1], 1)

    def forward(self, x, _):
        return self.head(self.stack(x).mean(dim=(2, 3)))


def torch_side(kind, hidden, layers, steps, batch):
    torch.manual_seed(0)
    if kind == "mlp":
        model, table = Tabular(hidden, layers), torch.randn(ROWS, 128)
    elif kind == "cnn":
        # Channels-last is the faster of PyTorch's two layouts here.
        model = Pictures(hidden, layers).to(memory_format=torch.channels_last)
        table = torch.randint(0, 256, (2_000, 1, steps, steps), dtype=torch.uint8)
    else:
        model, table = Sequence({"lstm": nn.LSTM, "gru": nn.GRU}[kind], hidden, layers), torch.randn(ENTITIES * DAYS, FEATURES)
    labels = torch.randn(len(table), 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    windows = kind in ("lstm", "gru")
    offsets = torch.arange(steps)

    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            rows = torch.randint(0, len(table) - (steps if windows else 1), (batch,))
            x = table[rows[:, None] + offsets] if windows else table[rows]
            if kind == "cnn":
                x = x.float().div_(255).contiguous(memory_format=torch.channels_last)
            loss = nn.functional.mse_loss(model(x, rows // DAYS), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return time.perf_counter() - start

    return run


def engine_side(kind, hidden, layers, steps, batch, threads):
    binary = os.environ.get("CPU_BENCH", ROOT / "target/release/examples/cpu_bench")
    command = [binary, kind, *map(str, (hidden, layers, steps, batch, threads))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(count):
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return run, process


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    rows = []
    for case in CASES:
        name = "{}-{}x{}-t{}-b{}".format(case[0], case[2], case[1], case[3], case[4])
        if arguments.only not in name:
            continue
        ours, process = engine_side(*case, threads)
        sides = {"flatout": ours, "torch": torch_side(*case)}
        counts = {}
        for side, run in sides.items():
            run(1)
            counts[side] = max(1, int(arguments.seconds / run(1)))
        rates = {side: [] for side in sides}
        for _ in range(arguments.rounds):
            for side, run in sides.items():
                rates[side].append(case[4] * counts[side] / run(counts[side]))
        process.stdin.close()
        process.wait()
        medians = {side: statistics.median(values) for side, values in rates.items()}
        row = {"case": name, "flatout": rates["flatout"], "torch": rates["torch"], "ratio": medians["flatout"] / medians["torch"]}
        rows.append(row)
        print(f"{name:24s} flatout {medians['flatout']:10.0f}  torch {medians['torch']:10.0f} samples/s  {row['ratio']:.2f}x", flush=True)
    if arguments.output:
        machine = {"processor": processor(), "threads": threads, "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")}
        arguments.output.write_text(json.dumps({"machine": machine, "unit": "samples/s", "rounds": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
