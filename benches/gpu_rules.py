"""Rules that only a GPU can show: runs small programs under `flatout run`, each with a fault and without, and prints what was found.

    python benches/gpu_rules.py [CASE…] [--flatout target/release/flatout] [--seconds 14]

For each case: whether the expected rule is a cause of the faulty program and of none without the fault, its location, the promised gain
and the measured one (steps per second with and without the fault), the GPU time by kind and the MFU. Exit code 1 when a rule is missed
or reported for the fixed program. Needs an NVIDIA GPU and PyTorch; about a minute per case.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def train(step, seconds):
    import torch

    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        step()
        steps += 1
        if steps % 50 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    print("STEPS_PER_S %.4f" % (steps / (time.monotonic() - begin)))


def optimizer_for(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def fp32_matmul(fixed, seconds):
    import torch
    from torch import nn

    torch.set_float32_matmul_precision("high" if fixed else "highest")
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
    optimizer, x = optimizer_for(model), torch.randn(4096, 4096, device="cuda")

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    train(step, seconds)


def mixed_precision(fixed, seconds):
    import torch
    from torch import nn

    torch.set_float32_matmul_precision("high")
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(8)]).cuda()
    optimizer, x = optimizer_for(model), torch.randn(8192, 4096, device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=fixed):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def fp64(fixed, seconds):
    import torch
    from torch import nn

    model = nn.Linear(2048, 2048).cuda()
    optimizer, x = optimizer_for(model), torch.randn(8192, 2048, device="cuda")

    def covariance(hidden):
        hidden = hidden if fixed else hidden.double()
        return (hidden.T @ hidden / len(hidden)).square().mean().float()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=fixed):
            loss = covariance(model(x))
        loss.backward()
        optimizer.step()

    train(step, seconds)


def attention(fixed, seconds, math=False):
    import torch
    from torch import nn
    from torch.nn import functional

    heads, width, tokens = 16, 1024, 1024

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            q, k, v = self.inputs(x).view(x.shape[0], tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
            if fixed or math:
                mixed = functional.scaled_dot_product_attention(q, k, v)
            else:
                scores = q @ k.transpose(-2, -1) / 8.0
                mixed = scores.softmax(-1) @ v
            return x + self.output(mixed.transpose(1, 2).reshape(x.shape))

    model = nn.Sequential(*[Block() for _ in range(6)]).cuda()
    optimizer, x = optimizer_for(model), torch.randn(16, tokens, width, device="cuda")
    if math and not fixed:
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def attention_math(fixed, seconds):
    attention(fixed, seconds, math=True)


def elementwise(fixed, seconds):
    import torch
    from torch import nn

    model = nn.Linear(1024, 1024).cuda()

    def mix(x):
        for _ in range(12):
            x = torch.tanh(x * 1.01 + 0.1) * torch.sigmoid(x) + x * 0.5
        return x

    mix = torch.compile(mix) if fixed else mix
    optimizer, x = optimizer_for(model), torch.randn(16384, 1024, device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = mix(model(x)).float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def layout(fixed, seconds):
    import torch
    from torch import nn

    torch.backends.cudnn.benchmark = True
    layers = [nn.Conv2d(64, 128, 3, padding=1)]
    for _ in range(10):
        layers += [nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)]
    model, x = nn.Sequential(*layers).cuda(), torch.randn(64, 64, 64, 64, device="cuda")
    if fixed:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = optimizer_for(model)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def checkpointing(fixed, seconds):
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    blocks = nn.ModuleList([nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)) for _ in range(8)]).cuda()
    optimizer, x = optimizer_for(blocks), torch.randn(8192, 2048, device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            hidden = x
            for block in blocks:
                hidden = block(hidden) if fixed else checkpoint(block, hidden, use_reentrant=False)
            loss = hidden.float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def small_copies(fixed, seconds):
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
    optimizer, rows = optimizer_for(model), [torch.randn(256) for _ in range(4096)]

    def move(batch):
        if fixed:
            return torch.stack(batch).cuda()
        return torch.stack([row.cuda() for row in batch])

    count = 0

    def step():
        nonlocal count
        count = (count + 128) % 4096
        x = move(rows[count : count + 128])
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    train(step, seconds)


def micro_batches(fixed, seconds):
    import torch
    from torch import nn

    layers = []
    for _ in range(12):
        layers += [nn.Linear(256, 256), nn.ReLU()]
    model = nn.Sequential(*layers).cuda()
    optimizer, x = optimizer_for(model), torch.randn(256, 256, device="cuda")
    size = 256 if fixed else 4

    def step():
        optimizer.zero_grad()
        for part in x.split(size):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(part).float().square().mean() * (size / 256)
            loss.backward()
        optimizer.step()

    train(step, seconds)


CASES = {
    "fp32_matmul": (fp32_matmul, "tf32-off"),
    "mixed_precision": (mixed_precision, "mixed-precision-off"),
    "fp64": (fp64, "double-precision"),
    "attention": (attention, "attention-unfused"),
    "attention_math": (attention_math, "attention-unfused"),
    "elementwise": (elementwise, "elementwise-bound"),
    "layout": (layout, "layout-conversions"),
    "checkpointing": (checkpointing, "recomputing-with-free-memory"),
    "small_copies": (small_copies, "many-small-copies"),
    "micro_batches": (micro_batches, "micro-batches-too-small"),
}


def run(flatout, name, fixed, seconds):
    """Steps per second and the diagnosis."""
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, FLATOUT_HOME=home)
        command = [sys.executable, os.path.abspath(__file__), "--inside", name, "--seconds", str(seconds)] + ["--fixed"] * fixed
        done = subprocess.run([flatout, "run", "--quiet", "--", *command], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit("%s: %s" % (name, done.stderr[-2000:]))
        speed = float(done.stdout.split("STEPS_PER_S", 1)[1].split()[0])
        told = subprocess.run([flatout, "diagnose", "last", "--json"], env=environment, capture_output=True, text=True)
        return speed, json.loads(told.stdout)


def describe(found):
    account = found.get("account") or {}
    kinds = ", ".join("%s %.0f%%" % (kind["kind"], kind["share"] * 100) for kind in account.get("gpu_kinds", [])[:5])
    lines = ["%s:%s %.0f%%" % (row["place"]["file"].split("/")[-1], row["place"]["line"], row["share"] * 100) for row in account.get("rows", []) if row["activity"] == "gpu-computing" and row.get("place")][:4]
    efficiency = account.get("efficiency") or {}
    vendor = (efficiency.get("vendor") or {}).get("share")
    mfu = "MFU %.1f%% (%s)" % (vendor * 100, efficiency["precision"]) if vendor is not None else "MFU not known"
    return "    %s\n    GPU lines: %s\n    %s" % (kinds, ", ".join(lines) or "none", mfu)


def causes(found):
    return [one for one in found["findings"] if one["kind"] == "cause" and one["severity"] in ("warning", "critical")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--flatout", default="target/release/flatout")
    parser.add_argument("--seconds", type=float, default=14)
    parser.add_argument("--inside")
    parser.add_argument("--fixed", action="store_true")
    options = parser.parse_args()
    if options.inside:
        CASES[options.inside][0](options.fixed, options.seconds)
        return
    wrong = 0
    for name in options.cases or CASES:
        wanted = CASES[name][1]
        slow, found = run(options.flatout, name, False, options.seconds)
        fast, clean = run(options.flatout, name, True, options.seconds)
        hit = next((one for one in causes(found) if one["rule"] == wanted), None)
        false = any(one["rule"] == wanted for one in causes(clean))
        gain = (hit or {}).get("gain") or {}
        place = ((hit or {}).get("places") or [{}])[0]
        first = [one["rule"] for one in causes(found)]
        print("%s: %s" % (name, "ok" if hit and not false else "WRONG"))
        print("    causes %s; without the fault %s" % (first, [one["rule"] for one in causes(clean)]))
        print("    %s:%s, promised %.2f to %.2f, measured %.2f" % (place.get("file", "-").split("/")[-1], place.get("line", "-"), gain.get("low", 1), gain.get("high", 1), fast / slow))
        print(describe(found))
        wrong += not hit or false
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
