import csv
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def leaves(n, classes, size, seed):
    """Coloured ellipses with class-dependent lobes, stored as bytes."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    axis = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    angle, radius = torch.atan2(yy, xx), (xx**2 + yy**2).sqrt()
    turn = torch.rand(n, 1, 1, generator=g) * 6.28
    edge = 0.6 + 0.2 * torch.cos((y + 2).view(-1, 1, 1) * (angle + turn))
    inside = torch.sigmoid(12 * (edge - radius)).unsqueeze(1)
    colour = torch.rand(n, 3, 1, 1, generator=g) * 0.5 + 0.25
    noise = torch.randn(n, 3, size, size, generator=g) * 0.05
    return ((inside * colour + noise).clamp(0, 1) * 255).to(torch.uint8), y


class Batches:
    def __init__(self, images, labels, batch):
        self.images, self.labels, self.batch = images, labels, batch
        self.mean = torch.tensor([0.25, 0.25, 0.25]).view(1, 3, 1, 1)

    def __iter__(self):
        order = torch.randperm(len(self.images))
        for lo in range(0, len(order) - self.batch + 1, self.batch):
            pick = order[lo:lo + self.batch]
            x = self.images[pick].float().div_(255).sub_(self.mean)
            if torch.rand(1).item() < 0.5:
                x = x.flip(3)
            yield x, self.labels[pick]


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Linear(c, c // 4), nn.Linear(c // 4, c)

    def forward(self, x):
        s = torch.sigmoid(self.b(F.relu(self.a(x.mean((2, 3))))))
        return x * s[:, :, None, None]


class Stage(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.c1 = nn.Conv2d(a, b, 3, 2, 1, bias=False)
        self.n1 = nn.BatchNorm2d(b)
        self.c2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.n2 = nn.BatchNorm2d(b)
        self.se = SqueezeExcite(b)

    def forward(self, x):
        x = F.relu(self.n1(self.c1(x)))
        return F.relu(x + self.se(self.n2(self.c2(x))))


class LeafNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.stages = nn.Sequential(Stage(16, 32), Stage(32, 64), Stage(64, 128))
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean((2, 3)))


def main():
    torch.manual_seed(171)
    images, labels = leaves(3000, 6, 64, seed=171)
    model = LeafNet(6)
    opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4, nesterov=True)
    steps, accuracy = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "log.csv"), "w", newline="") as f:
            log = csv.writer(f)
            start = time.monotonic()
            while time.monotonic() - start < 12:
                for x, y in Batches(images, labels, 32):
                    out = model(x)
                    loss = F.cross_entropy(out, y)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    hit = (out.argmax(1) == y).float().mean().item()
                    accuracy = 0.98 * accuracy + 0.02 * hit
                    steps += 1
                    if steps % 200 == 0:
                        log.writerow([steps, f"{loss.item():.5f}", f"{accuracy:.4f}"])
                        f.flush()
                    if time.monotonic() - start >= 12:
                        break
    print(f"accuracy {accuracy:.3f}")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
