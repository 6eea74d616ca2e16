"""Land-cover segmentation on synthetic satellite tiles."""
from dataclasses import dataclass
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class RunConfig:
    tile: int = 64
    tiles: int = 320
    classes: int = 4
    width: int = 16
    batch_size: int = 8
    learning_rate: float = 2e-3
    seed: int = 91
    compute_threads: int = 1
    seconds: float = 12.0


def prepare(cfg):
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(cfg.compute_threads)


def synthesize(cfg):
    """Smooth random fields thresholded into classes, with a spectral signature per class."""
    g = torch.Generator().manual_seed(cfg.seed)
    coarse = torch.randn(cfg.tiles, cfg.classes, 8, 8, generator=g)
    field = F.interpolate(coarse, size=cfg.tile, mode="bicubic", align_corners=False)
    mask = field.argmax(1)
    signature = torch.randn(cfg.classes, 4, generator=g)
    bands = signature[mask].permute(0, 3, 1, 2)
    return (bands + 0.5 * torch.randn(bands.shape, generator=g)).contiguous(), mask


def double_conv(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
        nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, bands, classes, w):
        super().__init__()
        self.enc1 = double_conv(bands, w)
        self.enc2 = double_conv(w, 2 * w)
        self.enc3 = double_conv(2 * w, 4 * w)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.dec2 = double_conv(4 * w, 2 * w)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.dec1 = double_conv(2 * w, w)
        self.out = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        c = self.enc3(F.max_pool2d(b, 2))
        b = self.dec2(torch.cat([b, self.up2(c)], 1))
        a = self.dec1(torch.cat([a, self.up1(b)], 1))
        return self.out(a)


def dice(logits, mask):
    p = logits.softmax(1)
    y = F.one_hot(mask, logits.shape[1]).permute(0, 3, 1, 2)
    inter = (p * y).sum((0, 2, 3))
    return 1 - (2 * inter / (p.sum((0, 2, 3)) + y.sum((0, 2, 3)))).mean()


def augment(x, y):
    if torch.rand(()) < 0.5:
        x, y = x.flip(-1), y.flip(-1)
    if torch.rand(()) < 0.5:
        x, y = x.flip(-2), y.flip(-2)
    return x, y


def main(cfg=RunConfig()):
    prepare(cfg)
    images, masks = synthesize(cfg)
    net = UNet(images.shape[1], cfg.classes, cfg.width)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.learning_rate)
    steps = 0
    deadline = time.monotonic() + cfg.seconds
    while time.monotonic() < deadline:
        pick = torch.randint(0, cfg.tiles, (cfg.batch_size,))
        x, y = augment(images[pick], masks[pick])
        logits = net(x)
        loss = F.cross_entropy(logits, y) + dice(logits, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 25 == 0:
            print(f"step {steps}: loss {loss.item():.3f}", flush=True)
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
