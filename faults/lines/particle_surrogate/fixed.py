"""Surrogate for a collider simulation: 10 inputs to 4 observables, 1.5M events."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
N_EVENTS = 1_500_000
BATCH = 8192 if device == "cuda" else 1024
SECONDS = 14


def simulate(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 10, generator=g) * 2 - 1
    w = torch.randn(10, 4, generator=g)
    return x, torch.sin(2 * x @ w) * torch.exp(-x[:, :1].square())


class Net(nn.Module):
    def __init__(self, width=288):
        super().__init__()
        self.inp = nn.Linear(10, width)
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        h = F.silu(self.inp(x))
        for layer in self.mid:
            h = h + F.silu(layer(h))
        return self.out(h)


class EventStore:
    def __init__(self, x, y, seed=1):
        self.x, self.y = x.to(device), y.to(device)
        self.rng = np.random.default_rng(seed)

    def draw(self, n):
        rows = self.rng.choice(len(self.x), n, replace=False, shuffle=False)
        rows = torch.from_numpy(rows).to(device)
        return self.x[rows], self.y[rows]


def main():
    torch.manual_seed(0)
    store = EventStore(*simulate(N_EVENTS))
    model = Net().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9995)
    step, start = 0, time.time()
    while time.time() - start < SECONDS:
        x, y = store.draw(BATCH)
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} mse {loss.item():.5f} lr {sched.get_last_lr()[0]:.2e}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - start
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    main()
