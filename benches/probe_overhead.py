"""What `flatout run` costs a training step: the same loop alone and under flatout, block by block in turn, in one run.

    python benches/probe_overhead.py --flatout target/release/flatout [--device cuda] [--width 4096] [--blocks 30] [--traceml]

Each arm is a process of its own that runs a block of steps whenever it is asked to, through two named pipes, so that any launcher
can stand before it; the arms take turns, so that whatever else the machine does hits all of them. Arms: alone, `flatout run`,
`flatout run --no-stacks`, and with `--traceml` TraceML (`traceml run`, its own calls around the step, as its guide asks for).
Choose `--width` so that a step takes 2 ms alone. Printed: the step alone, the difference a step with a 95% interval over the paired blocks.
"""

import argparse
import contextlib
import json
import os
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def worker(device, width, steps, peer, pipes):
    """Trains a block of steps for every line that comes in, and answers with the seconds it took."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(32 * steps, 64), torch.randn(32 * steps, 1)), batch_size=32, shuffle=True)

    if peer == "traceml":
        import traceml_ai

        traceml_ai.init(mode="auto")
        around = lambda: traceml_ai.trace_step(model)
    else:
        around = contextlib.nullcontext

    def block():
        begin = time.perf_counter()
        for number, (x, y) in enumerate(loader):
            with around():
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

    with open(os.path.join(pipes, "answers"), "w") as answers, open(os.path.join(pipes, "asks")) as asks:
        block()
        print("ready", file=answers, flush=True)
        for _ in asks:
            print(json.dumps(block()), file=answers, flush=True)


class Arm:
    def __init__(self, name, command, own):
        self.name, self.times = name, []
        self.folder = tempfile.mkdtemp(prefix="flatout-bench-")
        for pipe in ("asks", "answers"):
            os.mkfifo(os.path.join(self.folder, pipe))
        environment = dict(os.environ, FLATOUT_BENCH=json.dumps(dict(own, pipes=self.folder)))
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=environment, cwd=self.folder, **quiet)
        # Opened for both ways: neither side waits for the other's opening, and a worker that never starts cannot block us.
        descriptor = os.open(os.path.join(self.folder, "answers"), os.O_RDWR)
        self.answers = os.fdopen(descriptor)
        self.asks = os.fdopen(os.open(os.path.join(self.folder, "asks"), os.O_RDWR), "w")
        while not select.select([descriptor], [], [], 1.0)[0]:
            if self.process.poll() is not None:
                raise SystemExit("%s did not start" % name)
        self.answers.readline()

    def block(self):
        self.asks.write("go\n")
        self.asks.flush()
        return float(self.answers.readline())

    def end(self):
        self.asks.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


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
    parser.add_argument("--traceml", action="store_true", help="TraceML as a further arm (pip install traceml-ai)")
    arguments = parser.parse_args()
    own = {"device": arguments.device, "width": arguments.width, "steps": arguments.steps, "peer": None}
    script = os.path.abspath(__file__)
    python = [sys.executable, script]
    arms = [Arm("alone", python, own)]
    if arguments.flatout:
        flatout = [os.path.abspath(arguments.flatout), "run", "--quiet"]
        arms.append(Arm("flatout", flatout + ["--"] + python, own))
        arms.append(Arm("flatout --no-stacks", flatout + ["--no-stacks", "--"] + python, own))
    else:
        arms.append(Arm("probe", ["env"] + probe_environment() + python, own))
    if arguments.traceml:
        launcher = os.path.join(os.path.dirname(sys.executable), "traceml")
        arms.append(Arm("traceml", [launcher, "run", script], dict(own, peer="traceml")))
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
    if "FLATOUT_BENCH" in os.environ:
        worker(**json.loads(os.environ["FLATOUT_BENCH"]))
    else:
        main()
