"""Semantic segmentation of road scenes with a running mean IoU."""
import os
import time

import numpy as np
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, SIZE, WIDTH = (32, (256, 512), 64) if DEVICE == "cuda" else (2, (32, 64), 8)
CLASSES = 19
SECONDS = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))


class MeanIoU:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = np.zeros((classes, classes), dtype=np.int64)

    def update(self, logits, target):
        predicted = logits.argmax(1).cpu().numpy()
        target = target.cpu().numpy()
        pairs = target.ravel() * self.classes + predicted.ravel()
        self.matrix += np.bincount(pairs, minlength=self.classes**2).reshape(self.classes, -1)

    def value(self):
        hit = np.diag(self.matrix)
        return float((hit / np.maximum(self.matrix.sum(0) + self.matrix.sum(1) - hit, 1)).mean())


def block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class SegNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.stem = block(3, w, 2)
        self.down = nn.Sequential(block(w, 2 * w, 2), block(2 * w, 4 * w, 2), block(4 * w, 4 * w), block(4 * w, 4 * w))
        self.up = nn.Conv2d(4 * w, CLASSES, 1)

    def forward(self, x):
        h = self.up(self.down(self.stem(x)))
        return nn.functional.interpolate(h, scale_factor=8, mode="bilinear", align_corners=False)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    images = torch.randint(0, 255, (4 * BATCH, 3, *SIZE), dtype=torch.uint8, device=DEVICE)
    masks = torch.randint(0, CLASSES, (4 * BATCH, *SIZE), device=DEVICE)
    model = SegNet(WIDTH).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=DEVICE == "cuda")
    metric = MeanIoU(CLASSES)
    step, start = 0, None
    while start is None or time.time() - start < SECONDS:
        at = step % 4 * BATCH
        x = images[at : at + BATCH].to(memory_format=torch.channels_last).float().div_(255)
        y = masks[at : at + BATCH]
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(logits.detach(), y)
        step += 1
        if step == 10:
            start = time.time()
        if step % 100 == 0:
            print(f"step {step}: mIoU {metric.value():.3f}")
    print(f"{(step - 10) / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
