"""What `flatout run` costs a training step: the same loop alone and under flatout, block by block in turn.

    python benches/probe_overhead.py --flatout target/release/flatout [--device cuda] [--traceml] [--rounds 4] [--keep FILE]
    python benches/probe_overhead.py --show FILE [FILE…]

Each arm is a process of its own that runs a block of steps whenever it is asked to, through two named pipes, so that any launcher
can stand before it. The arms take turns in random order, so that whatever else the machine does hits all of them; all of them
run on the same CPU, one at a time. Two processes of the very same program differ by more than the probe costs (where their
memory lies, what the allocator did), so a round starts all of them anew, and `alone again` shows what is left of that. Arms: alone,
alone again, `flatout run`, `flatout run --no-stacks`, and with `--traceml` TraceML (`traceml run`, its own calls around the
step, as its guide asks for). The width is chosen so that a step alone takes 2 ms.

On a machine with neighbours that still leaves more noise than the probe costs. `--within SECONDS` therefore measures the probe alone
inside one process under `flatout run`, in one long epoch: what runs at every step (`__next__`, the hook after the optimizer) is in
place at six steps of eight and away at two, in random order, so that nothing differs but the probe and whatever lasts longer than
that hits all of them. On a GPU, which runs behind, a step lasts from one copy that waits for the device to the next one, and copies
and reads are switched as well; in every tenth group of eight each step reads its loss. Told are medians of the differences in
wall time and in the thread's CPU time, and the difference of the means. What the probe reckons up now and then hits few steps, so that no
median shows it: it is timed where it runs and told by itself, to be added (the means have it, and more of it: with steps
missing, it cannot be done column by column). `nothing` is the difference of the two without the probe: what this machine shows where
there is none.

With `--traceml`, `--within` puts TraceML's own calls around a step in the probe's place; its patches stay in both. On a GPU blocks of
70 steps take turns there.
`--outside SECONDS` does the same with all that `flatout run` does beside the program (stacks at 20 Hz, samples of the machine, the
rings): it is stopped and let go on, block by block.

`--inside SECONDS` asks the narrowest question: how long a step's calls into the probe take, each timed where it is called, between a
step's arithmetic and the next, so with the caches as the arithmetic left them. What others do to the machine then hits microseconds
instead of milliseconds. These are the hooks in `__next__`, before and after a batch, and the one after the optimizer's step. On a GPU most
of it passes while the device is busy, so a step grows by less.

Printed: the step alone, then per arm the median over rounds of the median difference of paired blocks, with a 95% interval
by bootstrap over rounds and the blocks in them. `--keep` appends the rounds to a file, `--show` counts several files together.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WARM_STEPS = 3
# Until the probe coasts: what it does before that is no steady step's.
WARM_GPU_STEPS = 15


def probe_switch(torch, device):
    """Takes the probe's hooks out of torch's functions, and puts them in again: those of every step."""
    woven = sys.modules["_flatout_probe.weave"].known if "_flatout_probe.weave" in sys.modules else {}
    after, sync = woven.get("Optimizer.profile_hook_step"), sys.modules.get("_flatout_probe.patches.sync")
    functions = [one for name, one in woven.items() if name == "_BaseDataLoaderIter.__next__"]
    if after is None or not functions:
        raise SystemExit("no probe in this process")
    # A step's own function is made from the woven one: only its hook can be exchanged.
    hook = after.leave
    ours = {name: one for name, one in vars(torch._C.TensorBase).items() if type(one).__module__ == sync.__name__}
    if len(ours) < (9 if device == "cuda" else 1):
        raise SystemExit("the probe does not follow the device")
    own = {name: one.original for name, one in ours.items()}

    def switch(on):
        for one in functions:
            one.wake() if on else one.rest()
        after.leave = hook if on else lambda optimizer, result: result
        sync._follow(ours if on else own)

    return switch


def outside_switch():
    """Stops the `flatout run` around this process, and lets it go on."""
    parent = os.getppid()
    return lambda on: os.kill(parent, signal.SIGCONT if on else signal.SIGSTOP)


def time_inside(torch):
    """Times the probe's own part of whatever of a step it is in; gives the lists that fill with nanoseconds, by name."""
    woven, now, times = sys.modules["_flatout_probe.weave"].known, time.perf_counter_ns, {}

    def timed(hook, found):
        def inside(*arguments):
            begin = now()
            result = hook(*arguments)
            found.append(now() - begin)
            return result

        return inside

    for name, title in (("_BaseDataLoaderIter.__next__", "next"), ("Optimizer.profile_hook_step", "after")):
        one, found = woven[name], times.setdefault(title, [])
        for hook in ("enter", "leave"):
            if getattr(one, hook) is not None:
                setattr(one, hook, timed(getattr(one, hook), found))
    return times


def worker(device, width, steps, peer, pipes, cpu):
    """Trains a block of steps for every line that comes in, and answers with the seconds it took."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    import torch
    from torch.utils.data import DataLoader, RandomSampler, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(4096, 64), torch.randn(4096, 1))
    # One epoch without end: what an epoch's begin costs is no step's.
    loader = DataLoader(data, batch_size=32, sampler=RandomSampler(data, replacement=True, num_samples=1 << 40))

    traced = [peer == "traceml"]
    if peer in ("traceml", "traceml switch"):
        import traceml_ai

        traceml_ai.init(mode="auto")
        around = lambda: traceml_ai.trace_step(model) if traced[0] else contextlib.nullcontext()
    else:
        around = contextlib.nullcontext
    batches = iter(loader)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    numbers = itertools.count()
    waiting = []

    def cycle(read):
        """A step on a device, between two copies for which it must have done all that came before."""
        if not waiting:
            x, y = next(batches)
            waiting.append((x.to(device), y))
        begin_cpu, begin = time.thread_time(), time.perf_counter()
        x, y = waiting.pop()
        y = y.to(device)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if read:
            loss.item()
        x, y = next(batches)
        waiting.append((x.to(device), y))
        return time.perf_counter() - begin, time.thread_time() - begin_cpu

    def block(warm=WARM_STEPS, steps=steps):
        begin = begin_cpu = 0.0
        for number in range(warm + steps):
            if number == warm:
                # Another arm had the CPU's caches until now.
                wait()
                begin_cpu, begin = time.thread_time(), time.perf_counter()
            x, y = next(batches)
            with around():
                x, y = x.to(device), y.to(device)
                loss = (model(x) - y).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if next(numbers) % 10 == 0:
                loss.item()
        wait()
        return time.perf_counter() - begin, time.thread_time() - begin_cpu

    with open(os.path.join(pipes, "answers"), "w") as answers, open(os.path.join(pipes, "asks")) as asks:
        block()
        single = steps == 1
        switches = {
            "switch": lambda: probe_switch(torch, device),
            "outside": outside_switch,
            # Its patches stay: what they cost between its own calls is not in it.
            "traceml switch": lambda: lambda on: traced.__setitem__(0, on),
        }
        switch = switches[peer]() if peer in switches else None
        print("ready", file=answers, flush=True)
        for line in asks:
            if peer == "inside":
                end, times = time.perf_counter() + float(line), time_inside(torch)
                block()
                for each in times.values():
                    each.clear()
                walls = []
                while time.perf_counter() < end:
                    walls.append(block()[0])
                told = {"step_ms": statistics.median(walls) / steps * 1e3, "times": times}
                print(json.dumps(told), file=answers, flush=True)
                continue
            if switch is None:
                print(json.dumps(block()[0]), file=answers, flush=True)
                continue
            warm = 0 if single else WARM_GPU_STEPS if device == "cuda" else WARM_STEPS
            block(steps=200)
            triples, end = [], time.perf_counter() + float(line)
            while time.perf_counter() < end:
                triple, with_it = {"read": len(triples) % 10 == 9}, []
                # Mostly with it, as it will be; of those steps one counts, and their mean.
                for arm in random.sample(["off", "off again"] + ["on"] * (6 if single else 1), 8 if single else 3):
                    switch(arm == "on")
                    triple[arm] = cycle(triple["read"]) if single and device == "cuda" else block(warm)
                    if arm == "on":
                        with_it.append(triple[arm])
                triple["all on"] = [statistics.fmean(each) for each in zip(*with_it)]
                triples.append(triple)
            switch(True)
            block(steps=100)
            spent = time_reckoning() if peer != "traceml switch" else [0]
            block(warm=0, steps=1000)
            print(json.dumps({"triples": triples, "reckoning_us": spent[0] / 1e6}), file=answers, flush=True)


def time_reckoning():
    """Times what the probe does now and then; gives the nanoseconds, which grow."""
    coast, spent, now = sys.modules["_flatout_probe.coast"], [0], time.perf_counter_ns
    own = coast.reckon

    def reckon():
        begin = now()
        own()
        spent[0] += now() - begin

    coast.reckon = reckon
    return spent


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

    def ready(self):
        while not select.select([self.answers], [], [], 1.0)[0]:
            if self.process.poll() is not None:
                raise SystemExit("%s did not start" % self.name)
        self.answers.readline()

    def ask(self, what="go"):
        self.asks.write("%s\n" % what)
        self.asks.flush()
        return json.loads(self.answers.readline())

    def end(self):
        self.asks.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def round_of(commands, own, blocks):
    """Every arm anew, then blocks in turn: seconds by arm."""
    arms = [Arm(name, command, dict(own, peer=peer)) for name, command, peer in commands]
    for arm in arms:
        arm.ready()
    for _ in range(blocks):
        for arm in random.sample(arms, len(arms)):
            arm.times.append(arm.ask())
    for arm in arms:
        arm.end()
    return {arm.name: arm.times for arm in arms}


def within(command, own, seconds, keep, peer="switch"):
    """The probe against none in one process, in triples of single steps, or of short blocks."""
    steps = 1 if peer == "switch" else 70 if own["device"] == "cuda" else {"outside": 10}.get(peer, 1)
    own = dict(own, steps=steps, peer=peer)
    arm = Arm("probe", command, own)
    arm.ready()
    told = arm.ask(seconds)
    arm.end()
    kept = {"device": own["device"], "width": own["width"], "steps": own["steps"], "triples": [], "reckoning_us": []}
    if keep and os.path.exists(keep):
        kept = json.load(open(keep))
        if kept["steps"] != own["steps"]:
            raise SystemExit("%s holds blocks of %d steps, not of %d" % (keep, kept["steps"], own["steps"]))
    kept["triples"] += told["triples"]
    kept["reckoning_us"].append(round(told["reckoning_us"], 2))
    if keep:
        with open(keep, "w") as file:
            json.dump(kept, file)
    print(json.dumps(within_summary(kept)))


def within_summary(kept):
    triples, steps = kept["triples"], kept["steps"]
    # Steps that read their loss are told by themselves, where there are any.
    reading = [triple for triple in triples if triple.get("read")] if steps == 1 and kept["device"] == "cuda" else []
    triples = [triple for triple in triples if not (reading and triple["read"])]
    result = {key: kept[key] for key in ("device", "width", "steps", "reckoning_us")}
    result["blocks"] = len(triples)
    for which, name in enumerate(("wall time", "CPU time")):
        found = {"alone_ms": round(statistics.median(triple["off"][which] for triple in triples) / steps * 1e3, 4)}
        for arm, title in (("on", "probe"), ("off again", "nothing")):
            # One against one: the median of a step less the mean of two would be too low, since slow steps are slower than quick ones quick.
            groups = [[(triple[arm][which] - triple["off"][which]) / steps * 1e3 for triple in triples]]
            low, high = interval(groups)
            found[title] = {"added_ms": round(middle(groups), 4), "low": round(low, 4), "high": round(high, 4)}
        if steps == 1 and all("all on" in triple for triple in triples):
            means = [triple["all on"][which] - (triple["off"][which] + triple["off again"][which]) / 2 for triple in triples]
            low, high = interval([means], of=lambda groups: statistics.fmean(groups[0]), picks=400)
            found["probe, by means"] = {"added_ms": round(statistics.fmean(means) * 1e3, 4), "low": round(low * 1e3, 4), "high": round(high * 1e3, 4)}
        reads = [(triple["on"][which] - triple["off"][which]) * 1e3 for triple in reading]
        if reads:
            low, high = interval([reads])
            found["probe, loss read"] = {"added_ms": round(statistics.median(reads), 4), "low": round(low, 4), "high": round(high, 4)}
        result[name] = found
    return result


def inside(flatout, own, seconds):
    """What a step's calls into the probe take, in microseconds a step: all of it, and without the slowest 1 in 200 of each kind, which
    holds what an interrupt or a neighbour hit and what is reckoned up now and then; the median of each kind by itself."""
    own = dict(own, steps=400, peer="inside")
    arm = Arm("probe", flatout + ["--", sys.executable, os.path.abspath(__file__)], own)
    arm.ready()
    told = arm.ask(seconds)
    arm.end()
    steps = len(told["times"]["after"])
    result = {"device": own["device"], "width": own["width"], "steps": steps, "step_ms": round(told["step_ms"], 3)}
    for name, times in told["times"].items():
        times.sort()
        most, middle = sum(times[: int(len(times) * 0.995)]), statistics.median(times or [0])
        parts = {"us_a_step": sum(times) / steps, "without_slowest": most / steps, "median_us": middle}
        result[name] = {"calls": len(times)} | {part: round(spent / 1e3, 2) for part, spent in parts.items()}
    for part in ("us_a_step", "without_slowest"):
        result[part] = round(sum(result[name][part] for name in told["times"]), 2)
    print(json.dumps(result))


def fitting_width(own, wanted_ms):
    """The width at which a step alone takes as long as wanted."""
    width, command = own["width"], [sys.executable, os.path.abspath(__file__)]
    for _ in range(3):
        times = round_of([("alone", command, None)], dict(own, width=width), 3)["alone"]
        step_ms = min(times) / own["steps"] * 1e3
        if abs(step_ms - wanted_ms) < wanted_ms * 0.1:
            break
        # Most of a step grows with the square of the width.
        width = max(64, min(16384, int(width * (wanted_ms / step_ms) ** 0.5 / 32) * 32))
    return width


def differences(rounds, arm, steps):
    """Per round, the paired blocks' differences from the arm alone, in milliseconds a step."""
    return [[(b - a) / steps * 1e3 for a, b in zip(times["alone"], times[arm])] for times in rounds if arm in times]


def middle(groups):
    return statistics.median(statistics.median(group) for group in groups)


def interval(groups, picks=2000, of=middle):
    """The 95% interval of `middle`: rounds are drawn again, and blocks within each."""
    found = sorted(
        of([random.choices(group, k=len(group)) for group in random.choices(groups, k=len(groups))]) for _ in range(picks)
    )
    return found[int(picks * 0.025)], found[int(picks * 0.975)]


def summary(kept):
    rounds, steps = kept["rounds"], kept["steps"]
    result = {key: kept[key] for key in ("device", "width", "steps")}
    result["rounds"], result["blocks"] = len(rounds), sum(len(times["alone"]) for times in rounds)
    result["alone_ms"] = statistics.median(time for times in rounds for time in times["alone"]) / steps * 1e3
    for arm in rounds[0]:
        if arm != "alone":
            groups = differences(rounds, arm, steps)
            low, high = interval(groups)
            result[arm] = {"added_ms": round(middle(groups), 4), "low": round(low, 4), "high": round(high, 4)}
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flatout", help="the binary")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, help="[default: so that a step takes --step-ms alone]")
    parser.add_argument("--step-ms", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=4, help="each with processes of its own")
    parser.add_argument("--blocks", type=int, default=20, help="of each arm a round")
    parser.add_argument("--steps", type=int, default=50, help="a block")
    parser.add_argument("--cpu", type=int, help="run every arm on this CPU")
    parser.add_argument("--traceml", action="store_true", help="TraceML as a further arm (pip install traceml-ai)")
    parser.add_argument("--keep", metavar="FILE", help="append the rounds to this file")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="only the probe, switched on and off in one process")
    parser.add_argument("--outside", type=float, metavar="SECONDS", help="only what `flatout run` does beside the program")
    parser.add_argument("--inside", type=float, metavar="SECONDS", help="only the time in the probe's own functions")
    parser.add_argument("--show", nargs="+", metavar="FILE", help="only count kept rounds together")
    arguments = parser.parse_args()
    random.seed(1)
    if arguments.show:
        files = [json.load(open(name)) for name in arguments.show]
        if "triples" in files[0]:
            files[0]["triples"] = [triple for kept in files for triple in kept["triples"]]
            files[0]["reckoning_us"] = [each for kept in files for each in kept["reckoning_us"]]
            print(json.dumps(within_summary(files[0])))
            return
        files[0]["rounds"] = [times for kept in files for times in kept["rounds"]]
        print(json.dumps(summary(files[0])))
        return
    if not arguments.flatout:
        parser.error("--flatout names the binary to measure")
    start = 12288 if arguments.device == "cuda" else 512
    own = {"device": arguments.device, "width": arguments.width or start, "steps": arguments.steps, "cpu": arguments.cpu}
    kept = None
    if arguments.keep and os.path.exists(arguments.keep):
        kept = json.load(open(arguments.keep))
        own["width"] = kept["width"]
    elif not arguments.width:
        own["width"] = fitting_width(own, arguments.step_ms)
    if arguments.inside:
        inside([os.path.abspath(arguments.flatout), "run", "--quiet"], own, arguments.inside)
        return
    script = os.path.abspath(__file__)
    python, flatout = [sys.executable, script], [os.path.abspath(arguments.flatout), "run", "--quiet"]
    # As its `traceml` command does it, wherever the package lies.
    traceml = [sys.executable, "-c", "import sys; from traceml_ai.launcher.cli import main; sys.exit(main())", "run", script]
    if arguments.outside:
        within(flatout + ["--"] + python, own, arguments.outside, arguments.keep, "outside")
        return
    if arguments.within and arguments.traceml:
        within(traceml, own, arguments.within, arguments.keep, "traceml switch")
        return
    if arguments.within:
        within(flatout + ["--"] + python, own, arguments.within, arguments.keep)
        return
    kept = kept or {"device": arguments.device, "width": own["width"], "steps": arguments.steps, "rounds": []}
    commands = [
        ("alone", python, None),
        ("alone again", python, None),
        ("flatout", flatout + ["--"] + python, None),
        ("flatout --no-stacks", flatout + ["--no-stacks", "--"] + python, None),
    ]
    if arguments.traceml:
        commands.append(("traceml", traceml, "traceml"))
    for _ in range(arguments.rounds):
        kept["rounds"].append(round_of(commands, own, arguments.blocks))
        if arguments.keep:
            with open(arguments.keep, "w") as file:
                json.dump(kept, file)
    print(json.dumps(summary(kept)))


if __name__ == "__main__":
    if "FLATOUT_BENCH" in os.environ:
        worker(**json.loads(os.environ["FLATOUT_BENCH"]))
    else:
        main()
