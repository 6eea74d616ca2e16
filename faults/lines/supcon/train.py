"""Supervised contrastive pre-training of a small CNN on synthetic glyphs."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 1024 if DEVICE == "cuda" else 256
N_CLASSES = 10
TEMPERATURE = 0.1
TRAIN_SECONDS = 14


def glyphs(n, size=16):
    g = torch.Generator().manual_seed(1)
    base = torch.rand(N_CLASSES, 1, size, size, generator=g).round()
    y = torch.randint(0, N_CLASSES, (n,), generator=g)
    x = base[y] + 0.5 * torch.randn(n, 1, size, size, generator=g)
    return x, y


def augment(x):
    dx, dy = torch.randint(-2, 3, (2,)).tolist()
    x = torch.roll(x, shifts=(dy, dx), dims=(2, 3))
    return x + 0.1 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.project = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, dim))

    def forward(self, x):
        z = self.project(self.features(x).flatten(1))
        return F.normalize(z, dim=1)


def supcon_loss(z, y):
    sim = z @ z.t() / TEMPERATURE
    eye = torch.eye(len(y), dtype=torch.bool, device=z.device)
    sim = sim.masked_fill(eye, -1e4)
    total = 0.0
    for i, row in enumerate(sim):
        positive = ((y == y[i]) & ~eye[i]).float()
        log_prob = F.log_softmax(row, dim=0)
        total = total - (log_prob * positive).sum() / positive.sum().clamp(min=1)
    return total / len(y)


def run():
    torch.manual_seed(0)
    x, y = glyphs(20000)
    x, y = x.to(DEVICE), y.to(DEVICE)
    net = Encoder().to(DEVICE)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=5000)
    begin = time.monotonic()
    it = 0
    while time.monotonic() - begin < TRAIN_SECONDS:
        idx = torch.randint(0, len(y), (BATCH,), device=DEVICE)
        z = net(augment(x[idx]))
        loss = supcon_loss(z, y[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        it += 1
        if it % 50 == 0:
            print(f"iter {it:5d}  supcon {loss.item():.4f}  lr {sched.get_last_lr()[0]:.4f}")
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    took = time.monotonic() - begin
    print(f"finished {it} iterations: {it / took:.2f} steps/s ({it * BATCH / took:.0f} samples/s)")


if __name__ == "__main__":
    run()
