"""Fraud detection on transactions; rare classes are drawn more often by a custom sampler."""
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler


class Transactions(Dataset):
    def __init__(self, n=10_000, features=64, seed=17):
        rng = np.random.default_rng(seed)
        self.x = torch.from_numpy(rng.standard_normal((n, features), dtype=np.float32))
        self.y = torch.from_numpy(rng.choice(3, n, p=[0.9, 0.08, 0.02]))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, rows):
        return self.x[rows], self.y[rows]


class InverseFrequencySampler(Sampler):
    def __init__(self, labels, num_samples):
        counts = torch.bincount(labels).float()
        self.weights = (1.0 / counts[labels]).tolist()
        self.population = list(range(len(labels)))
        self.num_samples = num_samples

    def __len__(self):
        return self.num_samples

    def __iter__(self):
        for _ in range(self.num_samples):
            yield random.choices(self.population, weights=self.weights, k=1)[0]


class FraudNet(nn.Module):
    def __init__(self, features=64, width=512, depth=5):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x)


def log(epoch, step, total, correct, seen):
    print(f"epoch {epoch:3d} step {step:5d} loss {total / max(seen, 1):.4f} acc {correct / max(seen, 1):.3f}")


def main(batch_size=128, lr=1e-3, seconds=14.0):
    random.seed(17)
    torch.manual_seed(17)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = Transactions()
    sampler = InverseFrequencySampler(data.y, num_samples=len(data))
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(sampler, batch_size, drop_last=True))
    model = FraudNet().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    step, epoch = 0, 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < seconds:
        total = torch.zeros((), device=device)
        correct = torch.zeros((), device=device)
        seen = 0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            logits = model(x)
            loss = criterion(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            seen += len(y)
            total += loss.detach() * len(y)
            correct += (logits.argmax(1) == y).sum()
            if time.perf_counter() - t0 >= seconds:
                break
        log(epoch, step, total.item(), correct.item(), seen)
        epoch += 1
    took = time.perf_counter() - t0
    print(f"total: {step / took:.2f} steps/s, {step * batch_size / took:.0f} samples/s")


if __name__ == "__main__":
    main()
