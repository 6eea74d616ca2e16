#!/usr/bin/env python3
"""Default-risk model on engineered customer features."""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
BIG = device == "cuda"


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=1_000_000 if BIG else 20_000)
    p.add_argument("--features", type=int, default=256 if BIG else 32)
    p.add_argument("--hidden", type=int, default=8192 if BIG else 64)
    p.add_argument("--batch-size", type=int, default=4096 if BIG else 256)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seconds", type=float, default=18.0)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


class Customers(Dataset):
    """All features fit on the device, so they are kept there."""

    def __init__(self, rows, features):
        g = torch.Generator(device=device).manual_seed(1)
        self.x = torch.randn(rows, features, device=device, generator=g)
        w = torch.randn(features, device=device, generator=g) / features**0.5
        self.y = ((self.x @ w + 0.3 * torch.randn(rows, device=device, generator=g)) > 0.4).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class RiskNet(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.inp = nn.Linear(features, hidden)
        self.mid = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h = F.silu(self.inp(x))
        for layer in self.mid:
            h = h + F.silu(layer(h))
        return self.out(h).squeeze(-1)


def main():
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    data = Customers(args.rows, args.features)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = RiskNet(args.features, args.hidden).to(device)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)

    began = time.monotonic()
    steps, epoch, running = 0, 0, torch.zeros((), device=device)
    done = False
    while not done:
        for x, y in loader:
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                loss = F.binary_cross_entropy_with_logits(model(x), y)
            loss.backward()
            optim.step()
            optim.zero_grad(set_to_none=True)
            running.lerp_(loss.detach(), 0.02)
            steps += 1
            if steps % 250 == 0:
                print(f"epoch {epoch} step {steps} bce {running.item():.4f}")
            if time.monotonic() - began > args.seconds:
                done = True
                break
        epoch += 1
    secs = time.monotonic() - began
    print(f"trained {steps} steps in {secs:.1f}s ({steps * args.batch_size / secs:,.0f} rows/s), bce {running.item():.4f}")


if __name__ == "__main__":
    main()
