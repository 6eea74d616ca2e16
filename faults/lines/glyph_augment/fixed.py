"""Glyph recognition with augmentation given as transform objects."""
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomShift:
    def __init__(self, pixels=2):
        self.pixels = pixels

    def __call__(self, img):
        dy = random.randint(-self.pixels, self.pixels)
        dx = random.randint(-self.pixels, self.pixels)
        return np.roll(img, (dy, dx), axis=(0, 1))


class SaltAndPepper:
    def __init__(self, amount=0.04):
        self.amount = amount

    def __call__(self, img):
        out = img.copy()
        u = np.random.random(out.shape)
        out[u < self.amount / 2] = 0
        out[u > 1 - self.amount / 2] = 255
        return out


class ToFloat:
    def __call__(self, img):
        return torch.from_numpy(img).unsqueeze(0).float().div_(255)


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, img):
        for s in self.steps:
            img = s(img)
        return img


class Glyphs(Dataset):
    def __init__(self, n=2000, size=96, classes=20, transform=None, seed=8):
        rng = np.random.default_rng(seed)
        proto = rng.integers(0, 255, (classes, size, size))
        self.labels = rng.integers(0, classes, n)
        jitter = rng.integers(-30, 30, (n, size, size))
        self.images = np.clip(proto[self.labels] + jitter, 0, 255).astype(np.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i]), int(self.labels[i])


def make_model(classes=20):
    def stage(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    return nn.Sequential(nn.Conv2d(1, 16, 6, stride=6), *stage(16, 16), nn.MaxPool2d(2), *stage(16, 32),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2 ** 32
    random.seed(seed)
    np.random.seed(seed)


if __name__ == "__main__":
    torch.manual_seed(8)
    BATCH, SECONDS = 48, 14.0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set = Glyphs(transform=Compose(RandomShift(), SaltAndPepper(), ToFloat()))
    loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, drop_last=True,
                        num_workers=min(4, os.cpu_count() or 1), persistent_workers=True, worker_init_fn=seed_worker)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    step, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            loss = criterion(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            if time.perf_counter() - t0 >= SECONDS:
                break
    dt = time.perf_counter() - t0
    print(f"{step / dt:.2f} steps/s | {step * BATCH / dt:.1f} samples/s")
