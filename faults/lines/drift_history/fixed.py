"""Robust regression: samples above a running loss quantile are down-weighted."""
import time
from collections import deque

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
DIM = 32


def make_data(n=16384):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, DIM, generator=g)
    y = torch.tanh(x[:, :4].sum(1)) + 0.2 * x[:, 4] * x[:, 5]
    bad = torch.rand(n, generator=g) < 0.05
    y[bad] += 10 * torch.randn(int(bad.sum()), generator=g)
    return x.to(DEV), y.to(DEV)


class LossQuantile:
    """Quantile of the per-sample losses, used as the outlier threshold."""

    def __init__(self, q=0.95):
        self.q = q
        self.seen = deque(maxlen=2048)

    def update(self, losses):
        self.seen.extend(losses.tolist())
        ordered = sorted(self.seen)
        return ordered[int(self.q * (len(ordered) - 1))]


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Linear(DIM, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(),
                                                  nn.Linear(width, width)) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    x_all, y_all = make_data()
    width, depth, batch = (1024, 8, 128) if DEV == "cuda" else (128, 4, 128)
    model = Net(width, depth).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    quantile = LossQuantile()
    step, start = 0, time.time()
    while time.time() - start < 14:
        pick = torch.randint(0, len(x_all), (batch,), device=DEV)
        err = (model(x_all[pick]) - y_all[pick]).pow(2)
        threshold = quantile.update(err.detach())
        weight = (err.detach() <= threshold).float()
        loss = (weight * err).sum() / weight.sum().clamp_min(1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} threshold {threshold:.3f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
