"""Fit a small physics-informed network to tabulated measurements with L-BFGS."""
import csv
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"


def write_table(path, n=4000):
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 6, n))
    x = rng.uniform(-1, 1, n)
    u = np.exp(-0.3 * t) * np.sin(3 * x + t) + 0.02 * rng.normal(size=n)
    np.savetxt(path, np.stack([t, x, u], 1), delimiter=",", header="t,x,u", comments="", fmt="%.6f")


def read_table(path):
    with open(path) as f:
        raw = [(float(r["t"]), float(r["x"]), float(r["u"])) for r in csv.DictReader(f)]
    table = torch.tensor(raw, dtype=torch.float32, device=DEV)
    return table[:, :2], table[:, 2:]


class Field(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, tx):
        return self.net(tx)


def smoothness(model, n=256):
    """Penalty on the time derivative at random collocation points."""
    tx = torch.rand(n, 2, device=DEV) * torch.tensor([6.0, 2.0], device=DEV) - torch.tensor([0.0, 1.0], device=DEV)
    tx.requires_grad_(True)
    u = model(tx)
    du, = torch.autograd.grad(u.sum(), tx, create_graph=True)
    return (du[:, 0] + 0.3 * u[:, 0]).pow(2).mean()


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "probe.csv")
    write_table(path)
    tx, u = read_table(path)
    width, depth = (512, 5) if DEV == "cuda" else (32, 2)
    model = Field(width, depth).to(DEV)
    opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=10)
    step, start = 0, time.time()
    while time.time() - start < 14:

        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(tx), u) + 1e-3 * smoothness(model)
            loss.backward()
            return loss

        loss = opt.step(closure)
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.5f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
