"""Tissue patch classifier; accesses to patient data are written to an audit trail."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class AuditTrail:
    def __init__(self, path, user="trainer"):
        self.file = open(path, "a")
        self.user = user

    def note(self, patient, patch):
        self.file.write(f"{time.time():.3f}\t{self.user}\t{patient}\t{patch}\n")

    def sync(self):
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self):
        self.file.close()


class TissuePatches(Dataset):
    def __init__(self, trail, n=1600, size=40, seed=14):
        rng = np.random.default_rng(seed)
        self.patches = rng.integers(0, 255, (n, 3, size, size), dtype=np.uint8)
        self.patient = rng.integers(0, 50, n)
        self.grade = rng.integers(0, 3, n)
        self.trail = trail

    def __len__(self):
        return len(self.patches)

    def __getitem__(self, i):
        self.trail.note(self.patient[i], i)
        x = torch.from_numpy(self.patches[i]).float().div_(255).sub_(0.5)
        return x, int(self.grade[i])


def patch_net(grades=3):
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
        nn.Conv2d(48, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, grades))


class Run:
    def __init__(self, folder, batch_size=32, seconds=14.0):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.batch_size, self.seconds = batch_size, seconds
        self.trail = AuditTrail(os.path.join(folder, "audit.tsv"))
        self.loader = DataLoader(TissuePatches(self.trail), batch_size, shuffle=True, drop_last=True)
        self.net = patch_net().to(self.device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.start = time.perf_counter()

    def expired(self):
        return time.perf_counter() - self.start > self.seconds

    def epoch(self):
        steps = 0
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            steps += 1
            if self.expired():
                break
        self.trail.sync()
        return steps, loss.item()

    def train(self):
        total, epochs = 0, 0
        self.start = time.perf_counter()
        while not self.expired():
            steps, loss = self.epoch()
            total += steps
            epochs += 1
            print(f"epoch {epochs} steps {total} loss {loss:.4f}")
        took = time.perf_counter() - self.start
        self.trail.close()
        print(f"{total / took:.2f} steps/s, {total * self.batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(14)
    with tempfile.TemporaryDirectory() as tmp:
        Run(tmp).train()
