"""Normalising flow (RealNVP) on a 32-d synthetic density with run logging."""
import json
import os
import tempfile
import time

import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
DIM = 32
BATCH = 4096 if device == "cuda" else 128


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(dim // 2, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, dim),
        )

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)
        return out, s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, dim=DIM, hidden=96, n_layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, hidden, i % 2 == 1) for i in range(n_layers))

    def log_prob(self, x):
        logdet = 0
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        return -0.5 * (x ** 2).sum(1) + logdet


class RunLog:
    def __init__(self, path):
        self.path = path

    def write(self, record):
        with open(self.path, "a") as f:
            f.write(json.dumps(record) + "\n")
            f.flush()
            os.fsync(f.fileno())

    def parameters(self, step, model, bins=30):
        record = {"step": step}
        for name, p in model.named_parameters():
            for kind, t in (("w", p.detach()), ("g", p.grad)):
                lo, hi = t.min().item(), t.max().item()
                hist = torch.histc(t, bins=bins, min=lo, max=hi + 1e-12)
                record[f"{name}/{kind}"] = {
                    "min": lo, "max": hi, "mean": t.mean().item(), "hist": hist.tolist(),
                }
        self.write(record)


def sample_density(n):
    g = torch.Generator().manual_seed(2)
    mix = torch.randn(DIM, DIM, generator=g) / DIM ** 0.5
    z = torch.randn(n, DIM, generator=g)
    return torch.sin(z @ mix) + 0.2 * torch.randn(n, DIM, generator=g)


def main(seconds=14):
    torch.manual_seed(0)
    data = sample_density(100_000).to(device)
    flow = RealNVP().to(device)
    opt = torch.optim.Adam(flow.parameters(), lr=5e-4)
    log = RunLog(os.path.join(tempfile.mkdtemp(), "run.jsonl"))
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        x = data[torch.randint(0, len(data), (BATCH,), device=device)]
        nll = -flow.log_prob(x).mean()
        opt.zero_grad()
        nll.backward()
        opt.step()
        step += 1
        log.parameters(step, flow)
        if step % 200 == 0:
            print(f"step {step:6d} nll {nll.item():.3f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    main()
