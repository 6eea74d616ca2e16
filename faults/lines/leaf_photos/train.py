"""Leaf disease classification from field photos (JPEG files in a folder)."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import functional as TF


def write_photos(root, n=60, seed=21):
    rng = np.random.default_rng(seed)
    for i in range(n):
        coarse = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        img = Image.fromarray(coarse).resize((1280, 960), Image.BILINEAR)
        os.makedirs(os.path.join(root, f"class{i % 4}"), exist_ok=True)
        img.save(os.path.join(root, f"class{i % 4}", f"{i:04d}.jpg"), quality=90)


class LeafPhotos(Dataset):
    """Repeats the few photos so that an epoch has a useful length."""

    def __init__(self, root, size=(80, 64), repeat=20):
        self.size = size
        self.files = []
        for label, name in enumerate(sorted(os.listdir(root))):
            folder = os.path.join(root, name)
            self.files += [(os.path.join(folder, f), label) for f in sorted(os.listdir(folder))]
        self.repeat = repeat

    def __len__(self):
        return len(self.files) * self.repeat

    def __getitem__(self, i):
        path, label = self.files[i % len(self.files)]
        with Image.open(path) as img:
            img = img.convert("RGB").resize(self.size, Image.BILINEAR)
        if torch.rand(()) < 0.5:
            img = TF.hflip(img)
        return TF.normalize(TF.to_tensor(img), [0.5] * 3, [0.25] * 3), label


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--workers", type=int, default=min(8, os.cpu_count() or 1))
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--seconds", type=float, default=14.0)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as root:
        write_photos(root)
        loader = DataLoader(LeafPhotos(root), batch_size=args.batch, shuffle=True, drop_last=True,
                            num_workers=args.workers, persistent_workers=args.workers > 0,
                            pin_memory=device.type == "cuda")
        model = torchvision.models.resnet18(num_classes=4).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        criterion = nn.CrossEntropyLoss()
        model.train()
        seen = steps = epoch = 0
        t0 = time.perf_counter()
        while time.perf_counter() - t0 < args.seconds:
            for images, labels in loader:
                images = images.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                optimizer.zero_grad(set_to_none=True)
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
                steps += 1
                seen += labels.numel()
                if steps % 40 == 0:
                    print(f"epoch {epoch} step {steps} loss {loss.item():.3f}")
                if time.perf_counter() - t0 >= args.seconds:
                    break
            epoch += 1
        if device.type == "cuda":
            torch.cuda.synchronize()
        elapsed = time.perf_counter() - t0
        print(f"{steps / elapsed:.2f} steps/s {seen / elapsed:.1f} samples/s")


if __name__ == "__main__":
    main()
