"""How fast, and with how much memory, `flatout analyze` reads a large log of another tool.

    cargo build --release -p flatout
    python benches/analyze_speed.py target/release/flatout --megabytes 1000

Writes an nvidia-smi log of two GPUs and a training log, then analyses each three times. The file is in the page cache by
then: what is measured is reading, not the disk.
"""

import argparse
import datetime
import json
import os
import subprocess
import tempfile
import time

COLUMNS = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz]\n"
)


def nvidia_smi(second, now):
    for gpu in range(2):
        busy = (second * 37 + gpu * 11) % 101
        yield (
            f"{now:%Y/%m/%d %H:%M:%S}.{second % 1000:03d}, {gpu}, NVIDIA A100-SXM4-40GB, {busy} %, {busy // 2} %, "
            f"{10000 + second % 5000} MiB, 40960 MiB, {100 + busy * 2.5:.2f} W, 400.00 W, {40 + busy // 4}, {1200 + second % 200}\n"
        )


def training(second, now):
    epoch = second // 500
    for step in range(10):
        yield (
            f"{now:%Y-%m-%d %H:%M:%S},{step:03d} INFO trainer: Epoch {epoch} step {step} loss={1 / (1 + second % 997):.6f} "
            f"lr=3.0e-04 time {0.1 + step * 0.01:.3f}s grad_norm={second % 13 / 7:.3f}\n"
        )
    if second % 5 == 0:
        yield f"Epoch {epoch}: {second % 100:3d}%|{'█' * 10}| {second % 1000}/1000 [00:12<00:15, 39.8it/s]\r"
    if second % 100 == 0:
        yield "lr_scheduler.py:130: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.\n"
    if second % 500 == 499:
        yield f"Epoch {epoch} done: val_loss=0.31, took {25 + epoch % 5}.3 s\n"


def write(path, header, lines, size):
    now = datetime.datetime(2026, 1, 1)
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(header)
        second = 0
        while written < size:
            block = []
            for _ in range(5000):
                block.extend(lines(second, now))
                second += 1
                now += datetime.timedelta(seconds=1)
            text = "".join(block)
            written += len(text.encode())
            file.write(text)


def measure(flatout, path):
    began = time.monotonic()
    process = subprocess.Popen([flatout, "analyze", path, "--json"], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    assert status == 0, output
    section = json.loads(output)["sections"][0]
    return os.path.getsize(path) / 1e6 / seconds, usage.ru_maxrss / 1024, section


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flatout")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--folder", default=None, help="where logs of an earlier run may lie")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for name, header, lines in [("nvidia-smi.csv", COLUMNS, nvidia_smi), ("train.log", "", training)]:
            path = os.path.join(options.folder or temporary, name)
            if not os.path.exists(path):
                write(path, header, lines, options.megabytes * 1_000_000)
            for _ in range(3):
                speed, memory, section = measure(options.flatout, path)
                seen = section.get("verdict", {}).get("ticks") or section["training"]["lines"]
                print(f"{name}: {speed:.0f} MB/s, peak memory {memory:.0f} MiB, {seen} ticks or lines", flush=True)


if __name__ == "__main__":
    main()
