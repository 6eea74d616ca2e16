"""ECG rhythm classification, 12 leads, with noise and baseline drift augmentation."""
import copy
import os
import time
from argparse import ArgumentParser

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LEADS, LENGTH = 12, 2000


def records(n=800, seed=6):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, LEADS, LENGTH), dtype=np.float32)
    y = rng.integers(0, 4, n)
    x += np.sin(np.linspace(0, 60, LENGTH, dtype=np.float32))[None, None] * y[:, None, None]
    return x.astype(np.float32), y


def augment(record, rng):
    sig = copy.deepcopy(record).astype(np.float64)
    noise = rng.normal(0.0, 0.05, size=sig.shape)
    drifted = np.empty((0, LENGTH))
    for lead in range(LEADS):
        t = np.linspace(0.0, 1.0, LENGTH)
        phase = rng.uniform(0, 2 * np.pi)
        drift = 0.1 * np.sin(2 * np.pi * t + phase)
        drifted = np.append(drifted, [sig[lead] + noise[lead] + drift], axis=0)
    return torch.tensor(drifted.copy()).float()


class ECG(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.rng = None

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        return augment(self.x[i], self.rng), self.y[i]


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(cin, cout, 7, stride=2, padding=3), nn.BatchNorm1d(cout), nn.ReLU(),
                                 nn.Conv1d(cout, cout, 5, padding=2), nn.BatchNorm1d(cout))
        self.skip = nn.Conv1d(cin, cout, 1, stride=2)

    def forward(self, x):
        return torch.relu(self.net(x) + self.skip(x))


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(LEADS, 24, 15, stride=8, padding=7)
        self.blocks = nn.Sequential(Block(24, 32), Block(32, 48), Block(48, 64))
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(-1))


def main():
    ap = ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--seconds", type=float, default=14)
    opt = ap.parse_args()
    torch.manual_seed(0)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(ECG(*records()), opt.batch_size, shuffle=True, drop_last=True,
                        num_workers=min(4, os.cpu_count() or 1), persistent_workers=True)
    net = RhythmNet().to(dev)
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    steps, begin, stop = 0, time.perf_counter(), False
    while not stop:
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.to(dev)), y.to(dev))
            adam.zero_grad()
            loss.backward()
            adam.step()
            steps += 1
            stop = time.perf_counter() - begin > opt.seconds
            if stop:
                break
        print("steps", steps, "loss %.4f" % loss.item())
    took = time.perf_counter() - begin
    print("%.2f steps/s, %.1f samples/s" % (steps / took, steps * opt.batch_size / took))


if __name__ == "__main__":
    main()
