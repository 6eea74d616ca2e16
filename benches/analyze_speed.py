"""How fast, and with how much memory, `flatout analyze` reads a large log of another tool.

    cargo build --release -p flatout
    python benches/analyze_speed.py target/release/flatout --megabytes 1000

Writes logs of two GPUs as nvidia-smi, `nvidia-smi dmon` and `gpustat --json` write them, one of flatout's own CSV and a training log, then
analyses each three times. The file is in the page cache by
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


def dmon(second, now):
    if second % 10 == 0:
        yield "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk\n"
        yield "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %      %      %    MHz    MHz\n"
    for gpu in range(2):
        busy = (second * 37 + gpu * 11) % 101
        yield (
            f" {now:%Y%m%d}   {now:%H:%M:%S}      {gpu}    {100 + busy * 2:3d}     {40 + busy // 4}      -    {busy:3d}    {busy // 2:3d}"
            f"      0      0      0      0   1215   {1200 + second % 200}\n"
        )


def gpustat(second, now):
    gpus = []
    for gpu in range(2):
        busy = (second * 37 + gpu * 11) % 101
        gpus.append(
            {
                "index": gpu,
                "uuid": f"GPU-0000000{gpu}-1111-2222-3333-444444444444",
                "name": "NVIDIA A100-SXM4-40GB",
                "temperature.gpu": 40 + busy // 4,
                "fan.speed": None,
                "utilization.gpu": busy,
                "utilization.enc": 0,
                "utilization.dec": 0,
                "power.draw": 100 + busy * 2,
                "enforced.power.limit": 400,
                "memory.used": 10000 + second % 5000,
                "memory.total": 40960,
                "processes": [
                    {
                        "username": "ada",
                        "command": "python",
                        "full_command": ["python", "train.py"],
                        "gpu_memory_usage": 9000,
                        "cpu_percent": 99.0,
                        "cpu_memory_usage": 2147483648,
                        "pid": 4242,
                    }
                ],
            }
        )
    yield json.dumps({"hostname": "node1", "driver_version": "550.54", "query_time": f"{now.isoformat()}", "gpus": gpus}, indent=4) + "\n"


OWN_COLUMNS = (
    "t,unix_ms,gpu,util,mem_util,mem_used_bytes,power_w,power_limit_w,temp_c,sm_clock_mhz,throttle,host_cpu_util,host_mem_available_bytes\n"
)


def own(second, now):
    for gpu in range(2):
        busy = (second * 37 + gpu * 11) % 101
        yield (
            f"{second}.000512,1767225600000,{gpu},{busy / 100},{busy // 2 / 100},{(10000 + second % 5000) << 20},{100 + busy * 2.5:.2f},400,"
            f"{40 + busy // 4},{1200 + second % 200},power-cap,0.{second % 97:02d},{60 << 30}\n"
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
    megabytes = os.path.getsize(path) / 1e6
    return megabytes / seconds, megabytes / (usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024, section


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flatout")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--folder", default=None, help="where logs of an earlier run may lie")
    options = parser.parse_args()
    kinds = [
        ("nvidia-smi.csv", COLUMNS, nvidia_smi),
        ("dmon.log", "", dmon),
        ("gpustat.json", "", gpustat),
        ("flatout.csv", OWN_COLUMNS, own),
        ("train.log", "", training),
    ]
    for name, header, lines in kinds:
        # One log at a time on the disk, unless they shall be kept.
        with tempfile.TemporaryDirectory() as temporary:
            path = os.path.join(options.folder or temporary, name)
            if not os.path.exists(path):
                write(path, header, lines, options.megabytes * 1_000_000)
            for _ in range(3):
                speed, by_cpu, memory, section = measure(options.flatout, path)
                seen = section.get("verdict", {}).get("ticks") or section["training"]["lines"]
                print(
                    f"{name}: {speed:.0f} MB/s, {by_cpu:.0f} MB a CPU second, peak memory {memory:.0f} MiB, {seen} ticks or lines", flush=True
                )


if __name__ == "__main__":
    main()
