"""Land-cover classification from compressed satellite tiles on disk."""
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True
CLASSES = 9
N_TILES, RAW, SIDE = (300, 320, 256) if GPU else (60, 160, 128)


def write_tiles(folder):
    rng = np.random.default_rng(0)
    yy, xx = np.mgrid[0:RAW, 0:RAW] / RAW
    for i in range(N_TILES):
        c = i % CLASSES
        wave = 0.5 + 0.4 * np.sin((c + 2) * 3 * xx + rng.uniform(0, 6)) * np.cos((c + 1) * 3 * yy)
        tile = np.stack([wave * s for s in rng.uniform(0.4, 1.0, 3)], -1)
        np.savez_compressed(os.path.join(folder, f"tile_{i:05d}.npz"), img=(tile * 255).astype(np.uint8), label=c)


class Tiles(Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, f) for f in os.listdir(folder))

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        with np.load(self.paths[i % len(self.paths)]) as f:
            img, label = f["img"], int(f["label"])
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, RAW - SIDE + 1, 2)
        crop = img[top : top + SIDE, left : left + SIDE].astype(np.float32) / 255
        crop = np.clip(crop, 1e-3, 1) ** rng.uniform(0.8, 1.25)  # haze / sun angle
        k = SIDE // 64
        crop = crop.reshape(64, k, 64, k, 3).mean((1, 3))
        crop = np.rot90(crop, rng.integers(4))
        return torch.from_numpy((crop * 255).astype(np.uint8).transpose(2, 0, 1).copy()), label


def block(cin, cout, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class LandNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.features = nn.Sequential(
            block(3, w, 1), block(w, 2 * w, 2), block(2 * w, 2 * w, 1), block(2 * w, 4 * w, 2), block(4 * w, 4 * w, 1))
        self.fc = nn.Linear(4 * w, CLASSES)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


def main(limit=18):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        write_tiles(folder)
        loader = DataLoader(Tiles(folder), batch_size=64 if GPU else 16, shuffle=True, drop_last=True,
                            num_workers=min(14, os.cpu_count()), pin_memory=GPU, persistent_workers=True)
        net = LandNet(64 if GPU else 8).to(device, memory_format=torch.channels_last)
        opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, fused=True)
        batches = iter(loader)
        next(batches)
        t0, steps, images = time.monotonic(), 0, 0
        for img, label in batches:
            img = img.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
            label = label.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(net(img.float().div_(255).sub_(0.5)), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            steps, images = steps + 1, images + len(label)
            if steps % 100 == 0:
                print(f"step {steps} loss {loss.item():.3f}")
            if time.monotonic() - t0 > limit:
                break
        print(f"{steps} steps, {images / (time.monotonic() - t0):.0f} tiles/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
