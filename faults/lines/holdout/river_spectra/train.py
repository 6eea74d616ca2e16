"""Classify water quality from near-infrared spectra."""
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOOP_SECONDS = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
BANDS = 512


def baseline(spectrum, degree=9, rounds=6):
    """Asymmetric polynomial baseline, as in the lab's protocol."""
    x = np.linspace(-1, 1, len(spectrum))
    design = np.vander(x, degree + 1)
    weights = np.ones_like(x)
    for _ in range(rounds):
        coef, *_ = np.linalg.lstsq(design * weights[:, None], spectrum * weights, rcond=None)
        fit = design @ coef
        weights = np.where(spectrum > fit, 0.1, 1.0)
    return fit


class Spectra(Dataset):
    def __init__(self, n=6000, seed=3):
        rng = np.random.default_rng(seed)
        grid = np.linspace(0, 1, BANDS)
        self.labels = rng.integers(0, 6, n)
        peaks = np.exp(-((grid[None] - (self.labels[:, None] + 1) / 8) ** 2) / 0.003)
        drift = rng.normal(size=(n, 3)) @ np.stack([grid, grid**2, grid**3])
        self.spectra = (peaks + drift + 0.05 * rng.normal(size=(n, BANDS))).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spectrum = self.spectra[i]
        spectrum = spectrum - baseline(spectrum)
        return torch.from_numpy(spectrum.astype(np.float32)), int(self.labels[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 32, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(32, 64, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(64, 64, 9, stride=2, padding=4), nn.ReLU(),
        )
        self.head = nn.Linear(64, 6)

    def forward(self, x):
        return self.head(self.features(x[:, None]).mean(-1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Spectra(), batch_size=128, shuffle=True, drop_last=True)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    steps, start, loss = 0, None, None
    while True:
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == 5:
                start = time.time()
            if start and time.time() - start > LOOP_SECONDS:
                print(f"{(steps - 5) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
                return


if __name__ == "__main__":
    main()
