import math
import os
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NUMERIC = ["temp", "humidity", "wind", "hour_sin", "hour_cos", "lag1", "lag24"]


def load_frame(n=30_000):
    rng = np.random.default_rng(21)
    hour = np.arange(n) % 24
    frame = pd.DataFrame({
        "temp": rng.normal(15, 8, n), "humidity": rng.uniform(20, 100, n), "wind": rng.gamma(2, 3, n),
        "hour_sin": np.sin(hour / 24 * 2 * np.pi), "hour_cos": np.cos(hour / 24 * 2 * np.pi),
        "lag1": rng.gamma(3, 20, n), "lag24": rng.gamma(3, 20, n),
        "station": rng.integers(0, 300, n), "weekday": np.arange(n) // 24 % 7,
    })
    frame["count"] = frame["lag24"] * 0.6 + frame["temp"] + rng.normal(0, 5, n)
    return frame


class Rentals(Dataset):
    def __init__(self, frame):
        self.frame = frame

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, i):
        row = self.frame.iloc[i]
        numeric = torch.tensor([row[c] for c in NUMERIC], dtype=torch.float32)
        return numeric / 50, int(row["station"]), int(row["weekday"]), np.float32(row["count"] / 50)


class Model(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.station = nn.Embedding(300, 24)
        self.weekday = nn.Embedding(7, 8)
        self.net = nn.Sequential(nn.Linear(7 + 32, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, numeric, station, weekday):
        return self.net(torch.cat([numeric, self.station(station), self.weekday(weekday)], 1)).squeeze(1)


def noisy_cosine(step, horizon=60_000):
    """Cosine decay, with the area under the rest of the curve as its weight."""
    rest = sum(0.5 * (1 + math.cos(math.pi * s / horizon)) for s in range(step, horizon))
    return rest / (horizon / 2)


def main():
    torch.manual_seed(0)
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    loader = DataLoader(Rentals(load_frame()), batch_size=128, shuffle=True, drop_last=True)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, noisy_cosine)
    steps, start = 0, None
    while True:
        for numeric, station, weekday, count in loader:
            loss = nn.functional.l1_loss(model(numeric, station, weekday), count)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            steps += 1
            if steps == 5:
                start = time.time()
            if start and time.time() - start > limit:
                print(f"{(steps - 5) / (time.time() - start):.2f} steps/s")
                return


if __name__ == "__main__":
    main()
