"""Functional training (torch.func) of a set classifier on pairwise distances."""
import math
import time

import torch
from torch import nn
from torch.func import functional_call

DEV = "cuda" if torch.cuda.is_available() else "cpu"
POINTS, CLASSES = 16, 4
PAIRS = POINTS * (POINTS - 1) // 2


def make_sets(n=4000):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    angle = torch.rand(n, POINTS, generator=g) * 6.28
    radius = 1 + 0.3 * y[:, None] * torch.cos((y[:, None] + 2) * angle)
    pts = torch.stack([radius * angle.cos(), radius * angle.sin()], -1)
    return pts + 0.05 * torch.randn(pts.shape, generator=g), y


def pair_features(batch):
    rows = []
    for pts in batch.tolist():
        row = []
        for i in range(POINTS):
            for j in range(i + 1, POINTS):
                row.append(math.hypot(pts[i][0] - pts[j][0], pts[i][1] - pts[j][1]))
        rows.append(sorted(row))
    return torch.tensor(rows, device=DEV)


class SetNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(PAIRS)
        self.net = nn.Sequential(nn.Linear(PAIRS, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                 nn.Linear(width, CLASSES))

    def forward(self, x):
        return self.net(self.norm(x))


def main():
    torch.manual_seed(0)
    pts, labels = make_sets()
    pts, labels = pts.to(DEV), labels.to(DEV)
    width, batch = (4096, 512) if DEV == "cuda" else (256, 64)
    model = SetNet(width).to(DEV)
    params = {k: v.detach().requires_grad_(True) for k, v in model.named_parameters()}
    velocity = {k: torch.zeros_like(v) for k, v in params.items()}
    lr = 0.02

    def loss_fn(params, x, y):
        return nn.functional.cross_entropy(functional_call(model, params, (x,)), y)

    step, start = 0, time.time()
    while time.time() - start < 14:
        pick = torch.randint(0, len(pts), (batch,), device=DEV)
        x = pair_features(pts[pick])
        loss = loss_fn(params, x, labels[pick])
        grads = torch.autograd.grad(loss, list(params.values()))
        with torch.no_grad():
            for (k, p), g in zip(params.items(), grads):
                velocity[k].mul_(0.9).add_(g)
                p.sub_(lr * velocity[k])
        step += 1
        if step % 200 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
