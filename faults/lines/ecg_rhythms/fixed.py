from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Recording(NamedTuple):
    leads: torch.Tensor
    rhythm: torch.Tensor


class RhythmSimulator:
    """Sums of Gaussian bumps per beat; rhythms differ in rate and regularity."""

    rates = (60, 75, 110, 140)
    spread = (0.01, 0.15, 0.01, 0.12)

    def __init__(self, seed, length=400, hz=100, leads=8):
        self.rng = np.random.default_rng(seed)
        self.length, self.hz = length, hz
        self.mixing = self.rng.normal(1.0, 0.4, (leads, 3))

    def one(self, rhythm):
        beat = 60 / self.rates[rhythm]
        count = int(self.length / self.hz / beat) + 3
        gaps = beat * (1 + self.spread[rhythm] * self.rng.standard_normal(count))
        onsets = np.cumsum(gaps) - self.rng.uniform(0, beat)
        t = np.arange(self.length) / self.hz
        rel = t[None, :] - onsets[:, None]
        waves = [np.exp(-((rel - d) ** 2) / s).sum(0) * h
                 for d, s, h in ((-0.16, 2e-3, 0.15), (0.0, 3e-4, 1.0), (0.22, 5e-3, 0.3))]
        return self.mixing @ np.stack(waves) + 0.05 * self.rng.standard_normal((len(self.mixing), self.length))

    def many(self, n) -> Recording:
        rhythm = self.rng.integers(0, len(self.rates), n)
        leads = np.stack([self.one(r) for r in rhythm])
        leads -= leads.mean(-1, keepdims=True)
        leads /= leads.std(-1, keepdims=True)
        return Recording(torch.from_numpy(leads.astype(np.float32)), torch.from_numpy(rhythm))


class Unit(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.c1 = nn.Conv1d(c_in, c_out, 9, stride, 4, bias=False)
        self.b1 = nn.BatchNorm1d(c_out)
        self.c2 = nn.Conv1d(c_out, c_out, 9, 1, 4, bias=False)
        self.b2 = nn.BatchNorm1d(c_out)
        self.skip = nn.Conv1d(c_in, c_out, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(h)) + self.skip(x))


class RhythmNet(nn.Module):
    def __init__(self, leads, classes, width=24):
        super().__init__()
        self.units = nn.Sequential(Unit(leads, width, 1), Unit(width, 2 * width, 2), Unit(2 * width, 2 * width, 2))
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.head(self.units(x).mean(-1))


class Fitter:
    def __init__(self, data: Recording, batch: int):
        self.data, self.batch = data, batch
        self.net = RhythmNet(data.leads.shape[1], len(RhythmSimulator.rates))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.gen = torch.Generator().manual_seed(0)
        self.steps = 0

    def step(self):
        idx = torch.randint(0, len(self.data.leads), (self.batch,), generator=self.gen)
        x, y = self.data.leads[idx], self.data.rhythm[idx]
        loss = F.cross_entropy(self.net(x), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.steps += 1
        return loss

    def run(self, seconds):
        self.net.train()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            loss = self.step()
            if self.steps % 50 == 0:
                print(f"step {self.steps} loss {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(31)
    data = RhythmSimulator(seed=31).many(1500)
    fitter = Fitter(data, batch=32)
    fitter.run(seconds=12)
    print("steps:", fitter.steps)


if __name__ == "__main__":
    main()
