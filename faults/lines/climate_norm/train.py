"""Predict next-day temperature anomalies from gridded climate fields."""
import time

import numpy as np
import torch
from torch import nn

DAYS, VARS, LAT, LON = 1500, 6, 24, 36


def reanalysis(seed=19):
    rng = np.random.default_rng(seed)
    fields = rng.standard_normal((DAYS, VARS, LAT, LON), dtype=np.float32)
    fields += np.arange(VARS, dtype=np.float32)[None, :, None, None] * 10
    return fields


def standardize(batch, fields):
    mean = fields.mean(axis=(0, 2, 3), keepdims=True)
    std = fields.std(axis=(0, 2, 3), keepdims=True)
    return (batch - mean) / (std + 1e-6)


def day_batches(fields, batch_size, rng):
    """Endless generator of (today, tomorrow's temperature)."""
    while True:
        days = rng.permutation(DAYS - 1)
        for k in range(0, len(days) - batch_size + 1, batch_size):
            pick = days[k:k + batch_size]
            today = standardize(fields[pick], fields)
            tomorrow = standardize(fields[pick + 1], fields)[:, :1]
            yield torch.from_numpy(today), torch.from_numpy(tomorrow)


class PeriodicConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3)

    def forward(self, x):
        x = nn.functional.pad(x, (1, 1, 0, 0), mode="circular")
        x = nn.functional.pad(x, (0, 0, 1, 1))
        return self.conv(x)


class WeatherNet(nn.Module):
    def __init__(self, width=24, depth=4):
        super().__init__()
        self.first = PeriodicConv(VARS, width)
        self.body = nn.ModuleList(PeriodicConv(width, width) for _ in range(depth))
        self.last = PeriodicConv(width, 1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        for conv in self.body:
            h = h + torch.relu(conv(h))
        return self.last(h)


def area_weights(device):
    lat = torch.linspace(-75, 75, LAT, device=device).deg2rad().cos()
    return (lat / lat.mean()).view(1, 1, LAT, 1)


def main(batch_size=16, lr=1e-3, seconds=14.0):
    torch.manual_seed(19)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    fields = reanalysis()
    model = WeatherNet().to(device)
    weights = area_weights(device)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    step, t0 = 0, time.perf_counter()
    for today, tomorrow in day_batches(fields, batch_size, np.random.default_rng(0)):
        today, tomorrow = today.to(device), tomorrow.to(device)
        loss = (weights * (model(today) - tomorrow) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} weighted mse {loss.item():.4f}")
        if time.perf_counter() - t0 > seconds:
            break
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
