#!/usr/bin/env python
"""
Day-ahead electricity load forecasting.

A GRU encoder reads the last `--context` hours of one meter and predicts the
next `--horizon` hours.  Data: hourly readings of a number of meters in long
format (meter, hour, load, temperature).
"""
import argparse
import logging
import math

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("load_forecast")


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--meters", type=int, default=300)
    p.add_argument("--days", type=int, default=180)
    p.add_argument("--context", type=int, default=96)
    p.add_argument("--horizon", type=int, default=24)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--samples-per-epoch", type=int, default=7000)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--log-every", type=int, default=20)
    return p.parse_args()


def synth_frame(n_meters, days, seed):
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    frames = []
    temp = 12 + 9 * np.sin(2 * np.pi * hours / (24 * 365)) + 4 * np.sin(2 * np.pi * hours / 24)
    for m in range(n_meters):
        base = rng.uniform(0.4, 2.5)
        phase = rng.uniform(0, 2 * np.pi)
        load = base * (1 + 0.5 * np.sin(2 * np.pi * hours / 24 + phase)) - 0.02 * temp
        load += 0.2 * np.sin(2 * np.pi * hours / 168) + rng.normal(0, 0.08, len(hours))
        frames.append(pd.DataFrame({
            "meter": m,
            "hour": hours,
            "load": load.astype(np.float32),
            "temperature": temp.astype(np.float32),
        }))
    return pd.concat(frames, ignore_index=True)


class WindowDataset(Dataset):
    """Random windows; the index picks (meter, start hour)."""

    def __init__(self, frame, index, context, horizon):
        self.frame = frame
        self.by = {m: g for m, g in frame.groupby('meter')}
        self.by = {m: (g['load'].to_numpy(), g['temperature'].to_numpy(), g['hour'].to_numpy()) for m, g in self.by.items()}
        self.index = index
        self.context = context
        self.horizon = horizon
        self.mean = float(frame["load"].mean())
        self.std = float(frame["load"].std())

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        meter, start = self.index[i]
        end = start + self.context + self.horizon
        L, Tm, H = (a[start:end] for a in self.by[meter])
        load = (L - self.mean) / self.std
        temp = (Tm - 12.0) / 8.0
        hod = H % 24 * (2 * math.pi / 24)
        feats = np.stack([load, temp, np.sin(hod), np.cos(hod)], axis=-1).astype(np.float32)
        return feats[: self.context], feats[self.context:, 1:], load[self.context:].astype(np.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.enc = nn.GRU(4, hidden, batch_first=True)
        self.head = nn.Sequential(
            nn.Linear(hidden + 3 * horizon, 128), nn.ReLU(), nn.Linear(128, horizon)
        )

    def forward(self, past, future):
        _, h = self.enc(past)
        return self.head(torch.cat([h[-1], future.flatten(1)], dim=-1))


def sample_index(rng, n, n_meters, lo, hi):
    return list(zip(rng.integers(0, n_meters, n).tolist(), rng.integers(lo, hi, n).tolist()))


def evaluate(model, loader):
    model.eval()
    tot, cnt = 0.0, 0
    with torch.no_grad():
        for past, fut, y in loader:
            tot += (model(past, fut) - y).abs().sum().item()
            cnt += y.numel()
    model.train()
    return tot / cnt


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    frame = synth_frame(args.meters, args.days, args.seed)
    span = args.context + args.horizon
    split = int(args.days * 24 * 0.85)
    train_idx = sample_index(rng, args.samples_per_epoch, args.meters, 0, split - span)
    val_idx = sample_index(rng, 400, args.meters, split, args.days * 24 - span)
    train_dl = DataLoader(WindowDataset(frame, train_idx, args.context, args.horizon),
                          batch_size=args.batch_size, shuffle=True)
    val_dl = DataLoader(WindowDataset(frame, val_idx, args.context, args.horizon), batch_size=200)
    log.info("%d rows, %d training windows", len(frame), len(train_idx))

    model = Forecaster(args.hidden, args.horizon)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.HuberLoss()
    step = 0
    for epoch in range(args.epochs):
        for past, fut, y in train_dl:
            loss = loss_fn(model(past, fut), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % args.log_every == 0:
                log.info("step %d loss %.4f", step, loss.item())
            step += 1
        log.info("epoch %d val MAE %.4f", epoch, evaluate(model, val_dl))


if __name__ == "__main__":
    main()
