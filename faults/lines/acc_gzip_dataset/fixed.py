"""accelerate: train on gzip-compressed JSON shards of spectra."""
import gzip
import json
import os
import tempfile
import time

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

PER_SHARD, SHARDS, POINTS, CLASSES = 20, 24, 100, 8


def write_shards(root):
    rng = np.random.default_rng(0)
    paths = []
    for s in range(SHARDS):
        y = rng.integers(0, CLASSES, PER_SHARD)
        x = np.sin(np.linspace(0, 9, POINTS)[None] * (1 + y[:, None])) + 0.3 * rng.normal(size=(PER_SHARD, POINTS))
        rows = [{"spectrum": [round(float(v), 4) for v in r], "label": int(c)} for r, c in zip(x, y)]
        path = os.path.join(root, f"shard_{s:03d}.json.gz")
        with gzip.open(path, "wt", compresslevel=4) as f:
            json.dump(rows, f)
        paths.append(path)
    return paths


class ShardDataset(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.items = []
        for path in paths:
            with gzip.open(path, "rt") as f:
                self.items += [(torch.tensor(r["spectrum"]), r["label"]) for r in json.load(f)]

    def __len__(self):
        return len(self.paths) * PER_SHARD

    def __getitem__(self, i):
        return self.items[i]


class SpectrumNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(2 * width, 2 * width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.head = nn.Linear(2 * width, CLASSES)

    def forward(self, x):
        return self.head(self.body(x[:, None]))


def main():
    torch.manual_seed(0)
    accelerator = Accelerator()
    cuda = accelerator.device.type == "cuda"
    data = ShardDataset(write_shards(tempfile.mkdtemp()))
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    model = SpectrumNet(512 if cuda else 48)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    step, start = 0, time.time()
    while time.time() - start < 14:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
            step += 1
            if step % 100 == 0:
                accelerator.print(f"step {step} loss {loss.item():.3f}")
    if cuda:
        torch.cuda.synchronize()
    accelerator.print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
