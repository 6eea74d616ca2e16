"""Customer churn model on a mixed categorical / numerical table."""
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CATEGORICAL = {"plan": 12, "region": 40, "device_type": 25, "channel": 8}
NUMERIC = ["tenure", "monthly_fee", "calls", "data_gb", "complaints", "late_payments", "roaming", "age"]


def load_customers(n=60_000, seed=42):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({c: rng.integers(0, k, n) for c, k in CATEGORICAL.items()})
    for c in NUMERIC:
        frame[c] = rng.gamma(2.0, 1.5, n)
    frame["churned"] = (rng.random(n) < 0.2).astype(np.int64)
    return frame


class ChurnDataset(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.cat_cols = list(CATEGORICAL)

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, idx):
        row = self.frame.iloc[idx]
        cat = torch.from_numpy(row[self.cat_cols].to_numpy(np.int64))
        num = torch.from_numpy(row[NUMERIC].to_numpy(np.float32))
        return cat, num, np.float32(row["churned"])


class TabularNet(nn.Module):
    def __init__(self, dim=32, hidden=768):
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(k, dim) for k in CATEGORICAL.values())
        width = dim * len(CATEGORICAL) + len(NUMERIC)
        self.norm = nn.BatchNorm1d(len(NUMERIC))
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, cat, num):
        parts = [e(cat[:, j]) for j, e in enumerate(self.embed)]
        return self.mlp(torch.cat(parts + [self.norm(num)], dim=1)).squeeze(1)


class Trainer:
    def __init__(self, batch_size=128, lr=2e-3, seconds=14):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.batch_size, self.seconds = batch_size, seconds
        data = ChurnDataset(load_customers())
        self.loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
        self.model = TabularNet().to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-4)
        self.loss = nn.BCEWithLogitsLoss()
        self.steps = 0

    def step(self, cat, num, y):
        cat, num, y = cat.to(self.device), num.to(self.device), y.to(self.device)
        loss = self.loss(self.model(cat, num), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.steps += 1
        return loss

    def run(self):
        start = time.perf_counter()
        epoch = 0
        while time.perf_counter() - start < self.seconds:
            for cat, num, y in self.loader:
                loss = self.step(cat, num, y)
                if self.steps % 200 == 0:
                    print(f"[{epoch}] step {self.steps}: {loss.item():.4f}")
                if time.perf_counter() - start >= self.seconds:
                    break
            epoch += 1
        if self.device == "cuda":
            torch.cuda.synchronize()
        dt = time.perf_counter() - start
        print(f"{self.steps / dt:.2f} steps/s, {self.steps * self.batch_size / dt:.0f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(42)
    Trainer().run()
