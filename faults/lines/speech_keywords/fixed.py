#!/usr/bin/env python3
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SR = 4000
KEYWORDS = ["yes", "no", "up", "down", "left", "right", "stop", "go"]


class Keywords(Dataset):
    """One-second clips; every keyword is a pair of gliding formants plus noise."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, len(KEYWORDS), n)
        t = np.arange(SR, dtype=np.float32) / SR
        f1 = 200 + 60 * self.y + rng.normal(0, 10, n)
        f2 = 900 + 90 * (self.y % 4) + rng.normal(0, 20, n)
        glide = np.where(self.y % 2 == 0, 1.0, -1.0) * 80
        self.x = np.empty((n, SR), dtype=np.float32)
        for i in range(n):
            s = np.sin(2 * np.pi * (f1[i] + glide[i] * t) * t) + 0.6 * np.sin(2 * np.pi * f2[i] * t)
            self.x[i] = s * np.hanning(SR)
        self.x += rng.standard_normal((n, SR), dtype=np.float32) * 0.4

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        shift = np.random.randint(-200, 200)
        return torch.from_numpy(np.roll(self.x[i], shift)), int(self.y[i])


class SpecNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("win", torch.hann_window(256))
        self.net = nn.Sequential(
            nn.Conv1d(129, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Conv1d(64, 64, 5, stride=2, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Conv1d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.fc = nn.Linear(64, len(KEYWORDS))

    def forward(self, wav):
        s = torch.stft(wav, 256, 64, window=self.win, return_complex=True).abs().add(1e-4).log()
        return self.fc(self.net(s))


def get_loader(ds, args, train):
    return DataLoader(
        ds,
        batch_size=args.batch_size,
        shuffle=train,
        num_workers=args.workers,
        multiprocessing_context="spawn" if args.workers else None,
        drop_last=train,
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--workers", type=int, default=0)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    train_dl = get_loader(Keywords(1600, 1), args, True)
    test_dl = get_loader(Keywords(300, 2), args, False)
    model = SpecNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        t0 = time.time()
        model.train()
        for wav, y in train_dl:
            loss = F.cross_entropy(model(wav), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        n = 0
        with torch.no_grad():
            for wav, y in test_dl:
                n += (model(wav).argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} test acc {n / len(test_dl.dataset):.3f} "
              f"{time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
