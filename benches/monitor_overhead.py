#!/usr/bin/env python3
"""What watching eight GPUs costs: flatout monitor beside nvitop and gpustat, on the same stand-in driver library.

Every tool gets a terminal of 200x50 of its own and the same eight GPUs; gpustat gets a pipe, since on a terminal it waits for an
answer to its questions. Measured from outside, by the kernel's own
counts: processor time over a window after the start, the most memory it ever held, and the time from its start to the first
GPU value on its screen. For flatout also the ticks that its record misses.

    cargo build --release -p flatout -p flatout-fake-nvml
    python -m pip install -r benches/requirements.txt
    python benches/monitor_overhead.py --output benches/results/monitor_overhead.json
"""

import argparse
import datetime
import fcntl
import json
import os
import platform
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path


def processor_seconds(pid):
    """Of all its threads, to the nanosecond; the clock ticks of /proc/PID/stat are too coarse for what is measured here."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def peak_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def start(command, environment, on_terminal):
    """Starts a command in a terminal of its own, or on a pipe; gives its process and the other end."""
    if not on_terminal:
        ours, theirs = os.pipe()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)
        os.close(theirs)
        return process, ours
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)
    os.close(theirs)
    return process, ours


def drain(terminal, seconds, until=None):
    """Reads what is drawn; returns when `until` was seen or the time is over."""
    deadline, seen = time.perf_counter() + seconds, b""
    while (left := deadline - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:
                return None
            if not data:
                return None
            if until is not None:
                seen += data
                if until.search(seen):
                    return time.perf_counter()
    return None


def first_value_ms(command, first, environment, on_terminal):
    """The median of five starts, each with a record of its own."""
    found = []
    if "--record" in command:
        at = command.index("--record")
        command = command[:at] + command[at + 2 :]
    for _ in range(5):
        began = time.perf_counter()
        process, terminal = start(command, environment, on_terminal)
        seen = drain(terminal, 10, re.compile(first))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(terminal)
        if seen is not None:
            found.append(1000 * (seen - began))
    return round(statistics.median(found), 1) if found else None


def measure(name, command, first, environment, seconds, on_terminal):
    process, terminal = start(command, environment, on_terminal)
    try:
        drain(terminal, 15, re.compile(first))
        if process.poll() is not None:
            return {"tool": name, "error": f"ended with {process.returncode}"}
        drain(terminal, 2)
        before, since = processor_seconds(process.pid), time.perf_counter()
        drain(terminal, seconds)
        spent, window = processor_seconds(process.pid) - before, time.perf_counter() - since
        memory = peak_bytes(process.pid)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            drain(terminal, 1)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(terminal)
    return {
        "tool": name,
        "command": " ".join([Path(command[0]).name, *command[1:]]),
        "core_percent": round(100 * spent / window, 3),
        "window_s": round(window, 1),
        "peak_mb": round(memory / 1e6, 1),
        "first_value_ms": first_value_ms(command, first, environment, on_terminal),
    }


def missed_ticks(record, interval):
    times = [json.loads(line)["t"] for line in (record / "samples.jsonl").read_text().splitlines()]
    expected = round((times[-1] - times[0]) / interval)
    return {"ticks": len(times), "missed": expected - (len(times) - 1)}


def machine():
    cpu = next(line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return {"cpu": cpu, "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(), "python": platform.python_version()}


def version(command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--flatout", default=root / "target/release/flatout", type=Path)
    parser.add_argument("--library", default=root / "target/release/libflatout_fake_nvml.so", type=Path)
    parser.add_argument("--seconds", default=15, type=float, help="length of each measured window")
    parser.add_argument("--repeats", default=1, type=int)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()

    folder = Path(tempfile.mkdtemp())
    (folder / "libnvidia-ml.so.1").symlink_to(arguments.library.resolve())
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "LD_LIBRARY_PATH": str(folder),
        "FLATOUT_FAKE_NVML_GPUS": "8",
        "FLATOUT_HOME": str(folder / "home"),
    }
    for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NO_COLOR"):
        environment.pop(variable, None)
    beside = Path(sys.executable).parent
    # Sequences that only prepare the screen are not a reading; a share of time is.
    value = rb"%"
    flatout = str(arguments.flatout)
    tools = [
        ("flatout monitor, 1 s", [flatout, "monitor", "--record", "RECORD"], value, 1.0, True),
        ("flatout monitor, 20 Hz", [flatout, "monitor", "--interval", "0.05", "--record", "RECORD"], value, 0.05, True),
        ("flatout monitor --plain, 20 Hz", [flatout, "monitor", "--plain", "--interval", "0.05", "--record", "RECORD"], value, 0.05, True),
        ("nvitop, 1 s", [str(beside / "nvitop"), "--interval", "1"], rb"\d+W / \d+W", None, True),
        ("gpustat, 1 s", [str(beside / "gpustat"), "--interval", "1", "--color"], rb"MB", None, False),
    ]
    results = []
    for repeat in range(arguments.repeats):
        for index, (name, command, first, interval, on_terminal) in enumerate(tools):
            at = folder / f"record-{repeat}-{index}"
            command = [str(at) if part == "RECORD" else part for part in command]
            result = measure(name, command, first, environment, arguments.seconds, on_terminal)
            if interval and at.exists():
                result |= missed_ticks(at, interval)
                result["command"] = result["command"].replace(str(at), "DIR")
            results.append(result)
            print(json.dumps(result))
    shutil.rmtree(folder)
    report = {
        "schema": 1,
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "load_before": os.getloadavg()[0],
        "versions": {"flatout": version([flatout, "--version"]), "nvitop": version([str(beside / "nvitop"), "--version"]), "gpustat": version([str(beside / "gpustat"), "--version"])},
        "gpus": 8,
        "results": results,
    }
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
