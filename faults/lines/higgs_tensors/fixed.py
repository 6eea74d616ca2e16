"""Signal / background separation on a collider data set that fits in (device) memory."""
import argparse
import time

import torch
from torch import nn


def collisions(n, features, device, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=g)
    w = torch.randn(features, generator=g)
    y = (x @ w + torch.randn(n, generator=g) > 0).float()
    return x.to(device), y.to(device)


class Tower(nn.Module):
    def __init__(self, features, width, depth, dropout=0.1):
        super().__init__()
        dims = [features] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(depth))
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for linear, norm in zip(self.hidden, self.norms):
            x = self.drop(torch.relu(norm(linear(x))))
        return self.out(x).squeeze(1)


def auc_like(logits, y):
    pos, neg = logits[y > 0.5], logits[y < 0.5]
    k = min(len(pos), len(neg))
    return (pos[:k] > neg[:k]).float().mean()


def batches(x, y, size):
    order = torch.randperm(len(x), device=x.device)
    for rows in order[:len(x) - len(x) % size].split(size):
        yield x[rows], y[rows]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--events", type=int, default=200_000)
    ap.add_argument("--features", type=int, default=28)
    ap.add_argument("--batch-size", type=int, default=2048)
    ap.add_argument("--width", type=int, default=192)
    ap.add_argument("--depth", type=int, default=4)
    ap.add_argument("--seconds", type=float, default=14.0)
    args = ap.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = collisions(args.events, args.features, device)
    model = Tower(args.features, args.width, args.depth).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.98)
    loss_fn = nn.BCEWithLogitsLoss()

    steps, epoch, begin = 0, 0, time.perf_counter()
    running = True
    while running:
        for xb, yb in batches(x, y, args.batch_size):
            logits = model(xb)
            loss = loss_fn(logits, yb)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            steps += 1
            if time.perf_counter() - begin > args.seconds:
                running = False
                break
        sched.step()
        print(f"epoch {epoch} loss {loss.item():.4f} auc {auc_like(logits.detach(), yb).item():.3f}")
        epoch += 1
    took = time.perf_counter() - begin
    print(f"{steps / took:.2f} steps/s, {steps * args.batch_size / took:.0f} samples/s")


if __name__ == "__main__":
    main()
