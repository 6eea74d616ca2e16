"""Gradient accumulation on an imbalanced classification problem."""
import time
from collections import Counter

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
CLASSES, DIM, ACCUM = 20, 96, 4


def make_data(n=100000):
    g = torch.Generator().manual_seed(0)
    p = torch.arange(1, CLASSES + 1).float().pow(-1.2)
    y = torch.multinomial(p / p.sum(), n, replacement=True, generator=g)
    centers = torch.randn(CLASSES, DIM, generator=g)
    x = centers[y] + 1.5 * torch.randn(n, DIM, generator=g)
    return x, y


def class_weights(labels):
    counts = Counter(labels)
    total = sum(counts.values())
    return torch.tensor([total / (CLASSES * max(1, counts[c])) for c in range(CLASSES)], device=DEV)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a = nn.Linear(width, 2 * width)
        self.b = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))


def main():
    torch.manual_seed(0)
    x_all, y_all = make_data()
    label_list = y_all.tolist()
    x_all, y_all = x_all.to(DEV), y_all.to(DEV)
    width, depth, batch = (1024, 6, 1024) if DEV == "cuda" else (96, 3, 32)
    model = nn.Sequential(nn.Linear(DIM, width), *[Residual(width) for _ in range(depth)],
                          nn.Linear(width, CLASSES)).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5000)
    micro, start = 0, time.time()
    while time.time() - start < 14:
        pick = torch.randint(0, len(x_all), (batch,), device=DEV)
        weight = class_weights(label_list)
        loss = nn.functional.cross_entropy(model(x_all[pick]), y_all[pick], weight=weight)
        (loss / ACCUM).backward()
        micro += 1
        if micro % ACCUM == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
        if micro % (100 * ACCUM) == 0:
            print(f"update {micro // ACCUM} loss {loss.item():.3f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    steps = micro // ACCUM
    print(f"{steps} steps, {steps / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
