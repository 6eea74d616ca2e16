"""What watching eight GPUs costs: flatout monitor beside nvitop and gpustat, on the same stand-in library.

    cargo build --release -p flatout -p flatout-fake-nvml
    pip install -r benches/requirements.txt
    python benches/monitor/compare.py [--flatout target/release/flatout] [--seconds 20]

CPU is user and system time of the process over the wall time, start included. `first` is the time from the start to the
first reading, the median of five starts. gpustat writes to a pipe: on a terminal it waits for an answer to its questions.
"""

import argparse
import os
import pty
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def start(command, environment, on_terminal):
    """Its process id, and where its output comes out."""
    if on_terminal:
        pid, output = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, environment)
        return pid, output
    output, inside = os.pipe()
    program = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=inside, stderr=inside)
    os.close(inside)
    return program.pid, output


def watch(command, seconds, environment, on_terminal, until_first=False):
    """Runs a command; gives CPU share, resident megabytes, and seconds to the first reading."""
    started = time.monotonic()
    pid, terminal = start(command, environment, on_terminal)
    first = None
    while time.monotonic() - started < seconds:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            try:
                text = os.read(terminal, 1 << 16)
            except OSError:
                break
            # Escape sequences that only prepare the screen are not a reading; a share of time is.
            if first is None and (b"%" in text or b'"util"' in text or b" W" in text):
                first = time.monotonic() - started
                if until_first:
                    break
    os.kill(pid, signal.SIGKILL if until_first else signal.SIGINT)
    deadline = time.monotonic() + 3
    while True:
        ended, _, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        # A terminal that nobody reads would hold the program up.
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                os.read(terminal, 1 << 16)
            except OSError:
                pass
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
    wall = time.monotonic() - started
    os.close(terminal)
    return (usage.ru_utime + usage.ru_stime) / wall, usage.ru_maxrss / 1024, first


def main():
    parser = argparse.ArgumentParser()
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--flatout", default=root / "target/release/flatout")
    parser.add_argument("--library", default=root / "target/release/libflatout_fake_nvml.so")
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(arguments.library, Path(folder, "libnvidia-ml.so.1"))
        environment = dict(os.environ, LD_LIBRARY_PATH=folder, FLATOUT_FAKE_NVML_GPUS="8", TERM="xterm-256color")
        environment.pop("FLATOUT_NVML_LIB", None)
        environment.update(LINES="50", COLUMNS="120", FLATOUT_HOME=folder)
        flatout = [str(arguments.flatout), "monitor"]
        bin_folder = Path(sys.executable).parent
        candidates = [
            ("flatout monitor, 1 s", [*flatout, "--interval", "1"], True),
            ("flatout monitor, 20 Hz", [*flatout, "--interval", "0.05"], True),
            ("flatout monitor --json, 20 Hz", [*flatout, "--interval", "0.05", "--json"], False),
            ("nvitop, 1 s", [str(bin_folder / "nvitop"), "-m", "full", "--interval", "1"], True),
            ("gpustat -i 1", [str(bin_folder / "gpustat"), "-i", "1", "--color"], False),
        ]
        print(f"{'':32}{'CPU of a core':>14}{'resident':>12}{'first':>10}")
        for name, command, on_terminal in candidates:
            if not Path(command[0]).exists():
                print(f"{name:32} not installed")
                continue
            cpu, resident, _ = watch(command, arguments.seconds, environment, on_terminal)
            starts = [watch(command, 10, environment, on_terminal, until_first=True)[2] for _ in range(5)]
            known = [start for start in starts if start is not None]
            first = f"{statistics.median(known) * 1000:.0f} ms" if known else "?"
            print(f"{name:32}{cpu:13.2%} {resident:8.1f} MB{first:>10}")


if __name__ == "__main__":
    main()
