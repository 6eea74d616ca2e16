"""What `flatout run` costs a training step: the same loop alone and under flatout, block by block in turn, in one run.

    python benches/probe_overhead.py --flatout target/release/flatout [--device cuda] [--blocks 30] [--peer "traceml ..."]

Each arm is a process of its own that runs a block of steps whenever it is asked to; the arms take turns, so that whatever else
the machine does hits all of them. Printed: the step alone, the difference a step with a 95% interval over the paired blocks.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def worker(device, width, steps):
    """Trains a block of steps for every line that comes in, and answers with the seconds it took."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(32 * steps, 64), torch.randn(32 * steps, 1)), batch_size=32, shuffle=True)

    def block():
        begin = time.perf_counter()
        for number, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % 10 == 0:
                loss.item()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    block()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(block()), flush=True)


class Arm:
    def __init__(self, name, prefix, own):
        self.name, self.times = name, []
        command = prefix + [sys.executable, __file__, "--worker"] + own
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while self.process.stdout.readline().strip() != "ready":
            if self.process.poll() is not None:
                raise SystemExit("%s did not start" % name)

    def block(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def probe_environment():
    """The probe alone, laid out as `flatout run` does it."""
    folder = tempfile.mkdtemp(prefix="flatout-bench-", dir="/dev/shm")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "flatout")
    shutil.copytree(source, os.path.join(folder, "python", "flatout"))
    shutil.copy(os.path.join(source, "_probe", "sitecustomize.py"), os.path.join(folder, "python"))
    os.mkdir(os.path.join(folder, "rings"))
    return ["PYTHONPATH=" + os.path.join(folder, "python"), "FLATOUT_RING=" + os.path.join(folder, "rings")]


def interval(differences, rounds=4000):
    """The median's 95% interval by bootstrap."""
    picks = sorted(statistics.median(random.choices(differences, k=len(differences))) for _ in range(rounds))
    return picks[int(rounds * 0.025)], picks[int(rounds * 0.975)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flatout", help="the binary; without it only the probe itself is put in, and nobody reads its rings")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peer", help="a command to put before python, such as another tool's launcher")
    parser.add_argument("--options", default="", help="options for flatout run")
    arguments = parser.parse_args()
    own = ["--device", arguments.device, "--width", str(arguments.width), "--steps", str(arguments.steps)]
    if arguments.flatout:
        prefix = [arguments.flatout, "run", "--quiet"] + arguments.options.split() + ["--"]
    else:
        prefix = ["env"] + probe_environment()
    arms = [Arm("alone", [], own), Arm("flatout", prefix, own)]
    if arguments.peer:
        arms.append(Arm("peer", arguments.peer.split(), own))
    random.seed(1)
    for _ in range(arguments.blocks):
        for arm in random.sample(arms, len(arms)):
            arm.times.append(arm.block())
    for arm in arms:
        arm.end()
    base = arms[0].times
    result = {"device": arguments.device, "blocks": arguments.blocks, "steps": arguments.steps}
    result["alone_ms"] = statistics.median(base) / arguments.steps * 1e3
    for arm in arms[1:]:
        differences = [(b - a) / arguments.steps * 1e3 for a, b in zip(base, arm.times)]
        low, high = interval(differences)
        result[arm.name] = {"added_ms": statistics.median(differences), "low": low, "high": high}
    print(json.dumps(result))


if __name__ == "__main__":
    if "--worker" in sys.argv:
        sys.argv.remove("--worker")
        parser = argparse.ArgumentParser()
        parser.add_argument("--device", default="cpu")
        parser.add_argument("--width", type=int)
        parser.add_argument("--steps", type=int)
        given = parser.parse_args()
        worker(given.device, given.width, given.steps)
    else:
        main()
