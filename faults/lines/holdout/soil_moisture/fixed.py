"""Soil moisture from satellite indices, joined with weather station records."""
import os
import tempfile
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

HERE = tempfile.mkdtemp(prefix="soil_")
STATIONS, DAYS, FIELDS = 40, 400, 1600
BUDGET = 18.0


def prepare_files():
    rng = np.random.default_rng(12)
    frame = pd.DataFrame({
        "station": np.repeat(np.arange(STATIONS), DAYS),
        "date": np.tile(pd.date_range("2021-01-01", periods=DAYS).astype(str), STATIONS),
        "rain": rng.gamma(0.6, 4.0, STATIONS * DAYS).round(3),
        "temp": rng.normal(11, 8, STATIONS * DAYS).round(3),
        "wind": rng.gamma(2, 2, STATIONS * DAYS).round(3),
    })
    frame.to_csv(os.path.join(HERE, "weather.csv"), index=False)
    np.save(os.path.join(HERE, "bands.npy"), rng.normal(size=(FIELDS, 8, 16, 16)).astype(np.float32))


def read_weather():
    df = pd.read_csv(os.path.join(HERE, "weather.csv"), parse_dates=["date"])
    df["api"] = df.groupby("station")["rain"].transform(lambda r: r.ewm(alpha=0.15).mean())
    df = df.sort_values(["station", "date"])
    return df[["rain", "temp", "wind", "api"]].to_numpy(np.float32).reshape(STATIONS, DAYS, 4)


class FieldDataset(Dataset):
    def __init__(self):
        self.bands = np.load(os.path.join(HERE, "bands.npy"), mmap_mode="r")
        self.weather = None

    def __len__(self):
        return FIELDS

    def __getitem__(self, i):
        day = 30 + (i * 37) % (DAYS - 30)
        w = self.weather[i % STATIONS, day - 30:day]
        patch = torch.from_numpy(np.array(self.bands[i]))
        target = 0.2 * w[-1, 3] + 0.1 * float(patch[0].mean())
        return patch, torch.tensor(w), torch.tensor(target, dtype=torch.float32)


def init_worker(worker_id):
    torch.set_num_threads(1)
    get_worker_info().dataset.weather = read_weather()


class MoistureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU())
        self.series = nn.Sequential(nn.Flatten(), nn.Linear(120, 64), nn.ReLU())
        self.fuse = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, patch, weather):
        a = self.image(patch).mean((2, 3))
        return self.fuse(torch.cat([a, self.series(weather)], 1)).squeeze(1)


def main():
    torch.manual_seed(12)
    prepare_files()
    loader = DataLoader(
        FieldDataset(), batch_size=32, shuffle=True, worker_init_fn=init_worker,
        num_workers=2, persistent_workers=True,
    )
    model = MoistureNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    t0 = time.monotonic()
    step = epoch = 0
    while time.monotonic() - t0 < BUDGET:
        losses = []
        for patch, weather, y in loader:
            loss = nn.functional.l1_loss(model(patch, weather), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
            step += 1
            if time.monotonic() - t0 > BUDGET:
                break
        epoch += 1
        print(f"epoch {epoch:3d} | mae {torch.stack(losses).mean():.4f} | {step} updates")
    print(f"{step / (time.monotonic() - t0):.2f} updates/s")


if __name__ == "__main__":
    main()
