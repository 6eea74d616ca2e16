"""Bird species fine-tuning: JPEG decode, crop and flip in workers, wide residual network."""
import argparse
import io
import os
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import functional as TF


def jpeg_bytes(n=400, side=96, seed=40):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        small = Image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8))
        buf = io.BytesIO()
        small.resize((side, side), Image.BICUBIC).save(buf, "JPEG", quality=85)
        out.append(buf.getvalue())
    return out, rng.integers(0, 30, n)


class BirdPhotos(Dataset):
    def __init__(self, blobs, labels, crop=64, repeat=25):
        self.blobs, self.labels, self.crop, self.repeat = blobs, labels, crop, repeat

    def __len__(self):
        return len(self.blobs) * self.repeat

    def __getitem__(self, i):
        i %= len(self.blobs)
        img = Image.open(io.BytesIO(self.blobs[i])).convert("RGB")
        x, y = torch.randint(0, img.width - self.crop, (2,)).tolist()
        img = img.crop((x, y, x + self.crop, y + self.crop))
        if torch.rand(()) < 0.5:
            img = TF.hflip(img)
        img = TF.adjust_brightness(img, 0.8 + 0.4 * float(torch.rand(())))
        return TF.normalize(TF.to_tensor(img), [0.5] * 3, [0.25] * 3), int(self.labels[i])


class Wide(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1, bias=False),
                               nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1, bias=False))

    def forward(self, x):
        return x + self.f(x)


def wide_net(width, classes=30):
    stages, c = [nn.Conv2d(3, width, 3, stride=2, padding=1)], width
    for _ in range(3):
        stages += [Wide(c), Wide(c), nn.Conv2d(c, 2 * c, 2, stride=2)]
        c *= 2
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, classes))


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=64 if cuda else 12)
    ap.add_argument("--width", type=int, default=256 if cuda else 48)
    ap.add_argument("--workers", type=int, default=min(8, os.cpu_count() or 1) if cuda else 1)
    ap.add_argument("--seconds", type=float, default=14.0)
    args = ap.parse_args()
    torch.manual_seed(40)
    device = "cuda" if cuda else "cpu"
    loader = DataLoader(BirdPhotos(*jpeg_bytes()), args.batch, shuffle=True, drop_last=True,
                        num_workers=args.workers, persistent_workers=True, pin_memory=cuda)
    net = wide_net(args.width).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    step, epoch, t0 = 0, 0, time.perf_counter()
    while time.perf_counter() - t0 < args.seconds:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
            if time.perf_counter() - t0 >= args.seconds:
                break
        epoch += 1
    if cuda:
        torch.cuda.synchronize()
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * args.batch / took:.1f} samples/s")


if __name__ == "__main__":
    main()
