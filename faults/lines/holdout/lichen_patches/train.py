"""Lichen species from photo patches with torchvision's transforms."""
import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18
from torchvision.transforms import v2

CUDA = torch.cuda.is_available()


class Patches(Dataset):
    def __init__(self, n, size, transform=None):
        g = torch.Generator().manual_seed(2)
        self.images = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=g)
        self.labels = torch.randint(0, 40, (n,), generator=g)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[i]


def augmentation(size):
    return v2.Compose([
        v2.ToDtype(torch.float32, scale=True),
        v2.RandomHorizontalFlip(),
        v2.RandomRotation(20),
        v2.ColorJitter(0.3, 0.3, 0.3, 0.05),
        v2.GaussianBlur(11, sigma=(0.1, 2.0)),
        v2.RandomResizedCrop(size, scale=(0.5, 1.0), antialias=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=256 if CUDA else 4)
    p.add_argument("--size", type=int, default=160 if CUDA else 32)
    p.add_argument("--workers", type=int, default=7 if CUDA else 1)
    p.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    device = "cuda" if CUDA else "cpu"
    augment = augmentation(args.size)
    data = Patches(8192 if CUDA else 64, args.size, augment)
    loader = DataLoader(
        data, args.batch, shuffle=True, drop_last=True, num_workers=args.workers, pin_memory=CUDA,
        persistent_workers=True, prefetch_factor=4,
    )
    model = resnet18(num_classes=40).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=CUDA)
    steps, start = 0, None
    while True:
        for images, labels in loader:
            images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == 5:
                start = time.time()
            if start and time.time() - start > args.seconds:
                print(f"{(steps - 5) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
                return


if __name__ == "__main__":
    main()
