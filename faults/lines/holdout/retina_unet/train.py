"""Vessel segmentation in retina photographs with a small U-Net."""
import argparse
import csv
import os
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn


def vessels(n, size):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    mask = torch.zeros(n, size, size, dtype=torch.bool)
    for _ in range(6):
        a, b, c = torch.randn(3, n, 1, 1)
        curve = yy - a * xx - 0.4 * b * torch.sin(3 * xx) - 0.3 * c
        mask |= curve.abs() < 0.04
    image = 0.6 - 0.25 * mask.float() + 0.1 * torch.randn(n, size, size)
    red = image + 0.2 * (1 - xx ** 2 - yy ** 2)
    return torch.stack([red, image, 0.5 * image], dim=1), mask.float().unsqueeze(1)


class Double(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, w=16, depth=3):
        super().__init__()
        sizes = [w * 2 ** i for i in range(depth + 1)]
        self.down = nn.ModuleList([Double(3, sizes[0])] + [Double(a, b) for a, b in zip(sizes, sizes[1:])])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(sizes, sizes[1:])][::-1])
        self.merge = nn.ModuleList([Double(2 * a, a) for a in sizes[:-1]][::-1])
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), skips.pop()], dim=1))
        return self.out(x)


def augment(x, m):
    both = torch.cat([x, m], dim=1)
    flip = torch.rand(len(x)) < 0.5
    both[flip] = both[flip].flip(3)
    both = torch.rot90(both, int(torch.randint(0, 4, (1,))), (2, 3))
    x, m = both[:, :3], both[:, 3:]
    gain = 1 + 0.2 * torch.randn(len(x), 3, 1, 1)
    return x * gain, m


def dice(logits, m):
    p = torch.sigmoid(logits)
    return (2 * (p * m).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + m.sum((1, 2, 3)) + 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--images", type=int, default=300)
    ap.add_argument("--size", type=int, default=64)
    ap.add_argument("--batch-size", type=int, default=12)
    ap.add_argument("--time", type=float, default=18.0)
    args = ap.parse_args()
    torch.manual_seed(1)
    images, masks = vessels(args.images, args.size)
    out = tempfile.mkdtemp()
    net = UNet()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    with open(os.path.join(out, "log.csv"), "w", newline="") as f:
        log = csv.writer(f)
        t0, n = time.monotonic(), 0
        while time.monotonic() - t0 < args.time:
            pick = torch.randint(0, args.images, (args.batch_size,))
            x, m = augment(images[pick], masks[pick])
            logits = net(x)
            d = dice(logits, m)
            loss = F.binary_cross_entropy_with_logits(logits, m) + 1 - d.mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
            log.writerow([n, round(loss.item(), 5), round(d.mean().item(), 5)])
            if n % 20 == 0:
                print(f"{n}: loss {loss.item():.4f} dice {d.mean().item():.4f}")
            if n % 500 == 0:
                torch.save(net.state_dict(), os.path.join(out, "unet.pt"))
        print(f"{n / (time.monotonic() - t0):.2f} steps/s")


if __name__ == "__main__":
    main()
