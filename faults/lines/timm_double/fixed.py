"""timm: ResNet on synthetic microscopy patches."""
import time

import numpy as np
import timm
import torch
from timm.optim import create_optimizer_v2
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CUDA = torch.cuda.is_available()
SIZE, CLASSES = 64 if CUDA else 32, 5


def make_patches(n=1024, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, n)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    base = np.stack([np.sin((k + 1) * 6 * xx) * np.cos((k + 2) * 4 * yy) for k in range(CLASSES)])
    imgs = base[labels][:, None] + 0.5 * rng.standard_normal((n, 3, SIZE, SIZE))
    imgs = ((imgs - imgs.mean()) / imgs.std()).astype(np.float32)
    return torch.from_numpy(imgs), torch.from_numpy(labels)


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total += value
        self.count += 1

    def mean(self):
        return self.total / max(1, self.count)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    images, labels = make_patches()
    loader = DataLoader(TensorDataset(images, labels), batch_size=128 if CUDA else 8, shuffle=True, drop_last=True,
                        num_workers=8 if CUDA else 0, persistent_workers=CUDA, pin_memory=CUDA)
    model = timm.create_model("resnet18" if CUDA else "resnet10t", pretrained=False, num_classes=CLASSES)
    model = model.to(device)
    opt = create_optimizer_v2(model, opt="sgd", lr=0.02, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    meter = Meter()
    step, start, running = 0, time.time(), True
    model.train()
    while running:
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = criterion(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                meter.update(loss.item())
                print(f"step {step} loss {meter.mean():.4f}")
            if time.time() - start > 14:
                running = False
                break
    if CUDA:
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
