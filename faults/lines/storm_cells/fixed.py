"""Radar storm cells: ResNet with averaged weights."""
import os
import time

import torch
from torch import nn
from torchvision.models import resnet18, resnet50

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
BATCH, SIZE = (64, 224) if CUDA else (2, 32)


class AveragedWeights:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        torch._foreach_lerp_(self.shadow, list(model.parameters()), 1 - self.decay)


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        build = resnet50 if CUDA else resnet18
        self.model = build(num_classes=8).to(DEVICE, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=CUDA)
        self.average = AveragedWeights(self.model)
        self.scans = torch.randint(0, 256, (16 * BATCH, 3, SIZE, SIZE), dtype=torch.uint8, device=DEVICE)
        self.kinds = torch.randint(0, 8, (16 * BATCH,), device=DEVICE)

    def step(self):
        rows = torch.randint(0, len(self.scans), (BATCH,), device=DEVICE)
        x = self.scans[rows].to(memory_format=torch.channels_last).float().div_(255)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(x), self.kinds[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.average.update(self.model)
        return loss

    def fit(self, seconds):
        for _ in range(8):
            self.step()
        start, n = time.time(), 0
        while time.time() - start < seconds:
            loss = self.step()
            n += 1
        print(f"{n / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    Trainer().fit(float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
