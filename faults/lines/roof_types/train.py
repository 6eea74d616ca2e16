"""Roof types from aerial tiles: torchvision ResNet-50, loader with workers."""
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18, resnet50

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CONFIG = {
    "tiles": 4096 if CUDA else 64,
    "size": 192 if CUDA else 32,
    "batch": 256 if CUDA else 4,
    "workers": 6 if CUDA else 0,
    "log_every": 100,
    "seconds": float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)),
}


class Tiles(Dataset):
    def __init__(self, n, size):
        g = torch.Generator().manual_seed(4)
        self.pixels = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=g)
        self.roofs = torch.randint(0, 12, (n,), generator=g)

    def __len__(self):
        return 40 * len(self.roofs)

    def __getitem__(self, i):
        return self.pixels[i % len(self.roofs)], self.roofs[i % len(self.roofs)]

    def __getitems__(self, indices):
        rows = torch.tensor(indices) % len(self.roofs)
        return self.pixels[rows], self.roofs[rows]


class Normalize(nn.Module):
    def forward(self, x):
        return x.contiguous(memory_format=torch.channels_last).to(torch.bfloat16).sub_(127).div_(64)


def train(c):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    options = dict(num_workers=c["workers"], persistent_workers=True, prefetch_factor=4) if c["workers"] else {}
    loader = DataLoader(
        Tiles(c["tiles"], c["size"]), batch_size=c["batch"], shuffle=True, drop_last=True, pin_memory=CUDA,
        collate_fn=lambda batch: batch, **options,
    )
    net = (resnet50 if CUDA else resnet18)(num_classes=12)
    net = nn.Sequential(Normalize(), net).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=CUDA)
    step, start = 0, None
    while True:
        for pixels, roofs in loader:
            pixels = pixels.to(DEVICE, non_blocking=True)
            roofs = roofs.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(net(pixels), roofs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 10:
                start = time.time()
            if step % c["log_every"] == 0:
                print(f"{step}: {loss.item():.3f}")
            if start and time.time() - start > c["seconds"]:
                return (step - 10) / (time.time() - start)


if __name__ == "__main__":
    print(f"{train(CONFIG):.2f} steps per second")
