"""Feeds flatout broken input for a while and says whether it ever panicked, hung or ended with a code of its own making.

    python3 benches/fuzz.py lint    --flatout target/debug/flatout --sources FOLDER --seconds 120
    python3 benches/fuzz.py records --flatout target/debug/flatout --seconds 120
    python3 benches/fuzz.py logs    --flatout target/debug/flatout --seconds 120

`lint` breaks Python sources taken from FOLDER and configuration files, `records` the records under faults/ and tests/data, `logs` the
logs that other tools write. What made it fail is kept and named; --seed repeats a run.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PIECES = [
    b"def ", b"for ", b"(", b")", b"[", b"]", b":", b"\n", b"\t", b"    ", b'"', b"'''", b'f"{', b"}", b"lambda ", b"*", b"**", b"=",
    b"DataLoader(", b".item()", b"torch.", b"with ", b"async ", b"\xff", b"\x00", b"\r", b"match x:\n", b"class ", b"return ", b"\\",
    b"\xe4\xb8\xad", b"@", b";", b":=",
]
YAML = b"train:\n  amp: true\n  workers: [1, 2]\nbase: &a\n  x: 1\nc:\n  <<: *a\n  \"q\": 'z'\n"
YAML_PIECES = [b"&", b"*", b"!", b":", b"- ", b"\n", b"  ", b"{", b"]", b'"', b"|\n", b"\xff", b"#"]
VALUES = [b"null", b"-1", b"1e999", b"NaN", b'"x"', b"[]", b"{}", b"18446744073709551616", b"0", b"1e-320", b"true", b'""', b"-0.0"]
LOGS = {
    "smi.csv": b"timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu\n"
    + b"".join(b"2026/11/15 10:%02d:%02d.000, %d, %d %%, %d MiB, %d.5 W, 61\n" % (i // 60, i % 60, i % 2, i, i * 9, i * 3) for i in range(120)),
    "smi-bare.csv": b"".join(b"2026/11/15 10:00:%02d.000, 0, %d, 400, 61\n" % (i, i) for i in range(60)),
    "dmon.log": b"# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk\n# Idx     W     C     C     %     %     %     %   MHz   MHz\n"
    + b"".join(b"    0   %d    41     -    %d    12     0     0  2619  1980\n" % (100 + i, i) for i in range(90)),
    "gpustat.json": b'{"hostname": "a", "query_time": "2026-11-15T10:00:00.123456", "gpus": [{"index": 0, "name": "H200", "utilization.gpu": 41, '
    b'"memory.used": 100, "memory.total": 143771, "power.draw": 300, "temperature.gpu": 60, "processes": []}]}\n',
    "train.log": b"".join(b"Epoch %d/20: 100%%|####| 50/50 [00:12<00:00, 4.1it/s, loss=%d.5] time 12.5s\n" % (i, 20 - i) for i in range(20))
    + b"Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nRuntimeError: CUDA out of memory\n",
}


def broken(data, pieces):
    data = bytearray(data)
    for _ in range(random.choice([1, 2, 5, 20])):
        at, kind = random.randrange(len(data) + 1), random.randrange(4)
        if kind == 0:
            del data[at : at + random.randrange(1, 40)]
        elif kind == 1:
            data[at:at] = random.choice(pieces)
        elif kind == 2 and data:
            start = random.randrange(len(data))
            data[at:at] = data[start : start + random.randrange(1, 200)]
        elif random.random() < 0.2:
            del data[at:]
    return bytes(data)


def broken_record_file(data):
    data = bytearray(data)
    kind = random.randrange(4)
    if kind == 0:
        del data[random.randrange(len(data) + 1) :]
    elif kind == 1 and data:
        for _ in range(10):
            data[random.randrange(len(data))] = random.randrange(256)
    elif kind == 2:
        # Other numbers of the same length, so that the rest stays what it was.
        numbers = list(re.finditer(rb"(?<=:)-?[0-9][0-9.e+-]*", bytes(data)))
        for found in random.sample(numbers, min(len(numbers), random.choice([1, 5, 50]))):
            value, length = random.choice(VALUES), found.end() - found.start()
            if len(value) <= length:
                data[found.start() : found.end()] = value.ljust(length)
    else:
        lines = bytes(data).split(b"\n")
        random.shuffle(lines)
        data = b"\n".join(lines)
    return bytes(data)


def lint(folder, arguments):
    sources = [path for path in pathlib.Path(arguments.sources).rglob("*.py") if path.stat().st_size < 30_000]
    for number in range(300):
        (folder / f"m{number}.py").write_bytes(broken(random.choice(sources).read_bytes(), PIECES))
    for number in range(20):
        (folder / f"c{number}.yaml").write_bytes(broken(YAML, YAML_PIECES))
    return 320, [["lint", folder, "--format", "json"], ["lint", folder, "--diff", "--unsafe"]]


def records(folder, arguments):
    found = [path.parent for place in ("faults", "tests/data") for path in (ROOT / place).rglob("run.json")]
    small = [record for record in found if sum(file.stat().st_size for file in record.rglob("*") if file.is_file()) < 400_000]
    record = folder / "record"
    shutil.copytree(random.choice(small), record)
    files = [file for file in record.rglob("*") if file.is_file()]
    for _ in range(random.choice([1, 3])):
        file = random.choice(files)
        file.write_bytes(broken_record_file(file.read_bytes()))
    whole = random.choice(small)
    page = folder / "page.html"
    return 1, [["diagnose", record], ["replay", record, "--plain", "--speed", "1000000"], ["report", record, "--html", page],
               ["compare", record, whole], ["analyze", record]]


def logs(folder, arguments):
    commands = []
    for name, text in LOGS.items():
        (folder / name).write_bytes(broken(text, [*VALUES, b",", b"\n", b" ", b"%", b"-", b"\xff\xfe", b"\x00", b"Epoch 3", b"nan", b"# "]))
        commands.append(["analyze", folder / name])
    return len(commands), commands


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lint", "records", "logs"])
    parser.add_argument("--flatout", default="target/debug/flatout")
    parser.add_argument("--sources", help="a folder with Python files, for lint")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "lint" and not arguments.sources:
        parser.error("lint needs --sources FOLDER")
    random.seed(arguments.seed)
    end, inputs, bad = time.monotonic() + arguments.seconds, 0, 0
    while time.monotonic() < end:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="flatout-fuzz-"))
        count, commands = globals()[arguments.what](folder, arguments)
        inputs, failed = inputs + count, False
        for command in commands:
            try:
                done = subprocess.run([arguments.flatout, *map(str, command)], capture_output=True, timeout=120)
                problem = done.returncode not in (0, 1, 2) or b"panicked" in done.stderr + done.stdout
                said = done.stderr.decode(errors="replace")[-400:]
            except subprocess.TimeoutExpired:
                problem, said = True, "no end after 120 s"
            if problem:
                failed = True
                print(f"failed: {' '.join(map(str, command))}\n{said}", flush=True)
        bad += failed
        if not failed:
            shutil.rmtree(folder)
    print(f"{inputs} broken inputs, {bad} of the rounds failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
