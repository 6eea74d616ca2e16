"""torchvision: MobileNet-style net on noisy 64px digits, with a custom noise transform."""
import random
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

CUDA = torch.cuda.is_available()
SIZE, CLASSES = 64, 10


class SaltPepper:
    """Sets a random share of the pixels to black or white."""

    def __init__(self, prob=0.05):
        self.prob = prob

    def __call__(self, img):
        arr = np.array(img)
        u = np.random.random(arr.shape)
        arr[u < self.prob / 2] = 0
        arr[u > 1 - self.prob / 2] = 255
        return Image.fromarray(arr)


class Digits(Dataset):
    def __init__(self, transform, n=4000):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(0, CLASSES, n)
        yy, xx = np.mgrid[0:SIZE, 0:SIZE] / SIZE
        base = [127 + 120 * np.sin((k + 2) * 3 * xx) * np.cos((k + 1) * 3 * yy) for k in range(CLASSES)]
        self.base = [Image.fromarray(b.astype(np.uint8)) for b in base]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        y = int(self.labels[i])
        return self.transform(self.base[y]), y


def conv(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    tf = T.Compose([SaltPepper(), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(0.5, 0.25)])
    batch, w = (128, 256) if CUDA else (32, 8)
    loader = DataLoader(Digits(tf), batch_size=batch, shuffle=True, drop_last=True,
                        num_workers=2 if CUDA else 0, persistent_workers=CUDA, pin_memory=CUDA)
    model = nn.Sequential(conv(1, w, 2), conv(w, 2 * w, 2), conv(2 * w, 4 * w, 2), conv(4 * w, 4 * w, 1),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, CLASSES)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step, start, running = 0, time.time(), True
    while running:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if time.time() - start > 14:
                running = False
                break
    if CUDA:
        torch.cuda.synchronize()
    print(f"loss {loss.item():.3f}; {step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
