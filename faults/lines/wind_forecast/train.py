"""Wind power forecasting: 72 h of measurements in, 24 h of power out."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_stations(folder, stations=6, hours=120_000, channels=24, seed=0):
    rng = np.random.default_rng(seed)
    paths = []
    for s in range(stations):
        series = rng.standard_normal((hours, channels), dtype=np.float32)
        series[:, 0] = np.cumsum(series[:, 0]) * 0.01
        path = os.path.join(folder, f"station_{s}.npy")
        np.save(path, series)
        paths.append(path)
    return paths


class StationWindows(Dataset):
    def __init__(self, paths, history=72, horizon=24, stride=12):
        self.paths = paths
        self.history, self.horizon = history, horizon
        self.index = []
        for s, path in enumerate(paths):
            hours = np.load(path, mmap_mode="r").shape[0]
            for start in range(0, hours - history - horizon, stride):
                self.index.append((s, start))

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        s, start = self.index[i]
        series = np.load(self.paths[s])
        window = np.array(series[start:start + self.history + self.horizon])
        x = torch.from_numpy(window[:self.history])
        y = torch.from_numpy(window[self.history:, 0])
        return x, y


class Forecaster(nn.Module):
    def __init__(self, channels=24, width=64, horizon=24):
        super().__init__()
        self.inp = nn.Linear(channels, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, horizon)

    def forward(self, x):
        h = self.encoder(self.inp(x))
        return self.head(h[:, -1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seconds", type=float, default=14.0)
    args = p.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        data = StationWindows(make_stations(folder))
        loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
        model = Forecaster().to(device)
        opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
        loss_fn = nn.SmoothL1Loss()

        step, epoch, start, done = 0, 0, time.perf_counter(), False
        while not done:
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = loss_fn(model(x), y)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                step += 1
                if step % 50 == 0:
                    print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
                if time.perf_counter() - start > args.seconds:
                    done = True
                    break
            epoch += 1
        if device == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - start
    print(f"{step / took:.2f} steps/s, {step * args.batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
