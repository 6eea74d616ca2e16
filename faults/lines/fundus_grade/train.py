"""Diabetic retinopathy grading: timm backbone, mixup, weight averaging, class-balanced sampling."""
import json
import os
import random
import tempfile
import time

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

CFG = {
    "model": "resnet18",
    "grades": 5,
    "size": 64,
    "batch": 16,
    "lr": 1e-3,
    "seconds": 18.0,
    "seed": 101,
    "log_every": 10,
}
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def fundus_images(n, size, grades, rng):
    """Reddish discs with as many bright lesions as the grade demands (skewed grades)."""
    grade = rng.choice(grades, n, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    yy, xx = np.mgrid[:size, :size]
    disc = (((yy - size / 2) ** 2 + (xx - size / 2) ** 2) < (size / 2.2) ** 2)[..., None]
    images = (disc * np.array([150, 70, 40])).astype(np.int16)[None].repeat(n, 0)
    images += rng.integers(-15, 15, images.shape, dtype=np.int16)
    for i in range(n):
        for r, c in rng.integers(size // 4, 3 * size // 4, (grade[i] * 3, 2)):
            images[i, r:r + 4, c:c + 4] += 70
    return images.clip(0, 255).astype(np.uint8), grade.astype(np.int64)


class GradeData:
    def __init__(self, cfg):
        rng = np.random.default_rng(cfg["seed"])
        x, y = fundus_images(1200, cfg["size"], cfg["grades"], rng)
        self.x = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous()
        self.y = torch.from_numpy(y)
        self.weight = 1.0 / torch.bincount(self.y, minlength=cfg["grades"]).float()[self.y]
        self.batch = cfg["batch"]

    def epoch(self):
        order = torch.multinomial(self.weight, len(self.y), replacement=True)
        for idx in order.split(self.batch):
            if len(idx) == self.batch:
                x = self.x[idx].float().div_(255).sub_(MEAN).div_(STD)
                yield (x.flip(3) if random.random() < 0.5 else x), self.y[idx]


class Journal:
    def __init__(self):
        self.file = open(os.path.join(tempfile.mkdtemp(), "journal.jsonl"), "w", buffering=1 << 16)

    def write(self, **row):
        self.file.write(json.dumps(row) + "\n")


def main(cfg):
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    data, journal = GradeData(cfg), Journal()
    model = timm.create_model(cfg["model"], pretrained=False, num_classes=cfg["grades"], drop_rate=0.1)
    ema = ModelEmaV3(model, decay=0.995, use_warmup=True)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=cfg["lr"], weight_decay=0.05)
    mixup = Mixup(mixup_alpha=0.2, num_classes=cfg["grades"], label_smoothing=0.1)
    criterion = SoftTargetCrossEntropy()
    t0, step = time.monotonic(), 0
    while True:
        for x, y in data.epoch():
            x, target = mixup(x, y)
            loss = criterion(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model, step)
            step += 1
            value = loss.item()
            journal.write(step=step, loss=value)
            if step % cfg["log_every"] == 0:
                print(f"step {step:4d} loss {value:.4f}")
            if time.monotonic() - t0 > cfg["seconds"]:
                print(f"{step / (time.monotonic() - t0):.2f} steps/s")
                return


main(CFG)
