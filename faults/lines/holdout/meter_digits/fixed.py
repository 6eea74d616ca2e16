"""Reading digits of water meters; trained with elastic deformations (Simard et al.)."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from scipy.ndimage import gaussian_filter, map_coordinates
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 32
FONT = ["111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
        "111100111001111", "111100111101111", "111001001001001", "111101111101111", "111101111001111"]


def elastic(image, alpha, sigma, rng):
    h, w = image.shape
    dx = gaussian_filter(rng.uniform(-1, 1, (h, w)), sigma, mode="constant") * alpha
    dy = gaussian_filter(rng.uniform(-1, 1, (h, w)), sigma, mode="constant") * alpha
    y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    return map_coordinates(image, [y + dy, x + dx], order=3, mode="reflect")


class MeterDigits(Dataset):
    def __init__(self, n=4000):
        rng = np.random.default_rng(0)
        glyphs = np.array([[int(c) for c in g] for g in FONT], dtype=np.float32).reshape(10, 5, 3)
        big = np.kron(glyphs, np.ones((1, 5, 6), dtype=np.float32))
        self.y = rng.integers(0, 10, n)
        self.x = np.zeros((n, SIZE, SIZE), dtype=np.float32)
        for i, d in enumerate(self.y):
            top, left = rng.integers(0, 7), rng.integers(0, 14)
            self.x[i, top:top + 25, left:left + 18] = big[d]
        self.x += rng.normal(0, 0.25, self.x.shape).astype(np.float32)
        self.rng = rng

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        return torch.from_numpy(img[None].astype(np.float32)), int(self.y[i])


def elastic_batch(x, strength=0.12):
    coarse = torch.randn(len(x), 2, 5, 5) * strength
    flow = F.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic", align_corners=True).permute(0, 2, 3, 1)
    base = F.affine_grid(torch.eye(2, 3).expand(len(x), 2, 3), list(x.shape), align_corners=False)
    return F.grid_sample(x, base + flow, padding_mode="reflection", align_corners=False)


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.n1, self.n2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return F.relu(x + self.n2(self.c2(F.relu(self.n1(self.c1(x))))))


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), ResBlock(16), nn.MaxPool2d(2), ResBlock(16))
        self.classify = nn.Linear(16 * 64, 10)

    def forward(self, x):
        return self.classify(self.features(x).flatten(1))


def train_epoch(model, loader, opt, deadline):
    n, total = 0, 0.0
    for x, y in loader:
        if time.monotonic() > deadline:
            break
        x = elastic_batch(x)
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
        loss.backward()
        opt.step()
        total += loss.item()
        n += 1
    return n, total / max(n, 1)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = DigitNet()
    loader = DataLoader(MeterDigits(), batch_size=64, shuffle=True)
    opt = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    t0 = time.monotonic()
    steps = 0
    deadline = t0 + 18.0
    while time.monotonic() < deadline:
        n, mean = train_epoch(model, loader, opt, deadline)
        steps += n
        print(f"{steps} steps, mean loss {mean:.4f}")
    print(f"{steps / (time.monotonic() - t0):.2f} steps/s")
