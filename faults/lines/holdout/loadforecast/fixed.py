"""Electricity load forecasting with an autoregressive GRU (teacher forcing mixed with own forecasts)."""
import argparse
import math

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--history", type=int, default=72)
parser.add_argument("--horizon", type=int, default=12)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--teacher-forcing", type=float, default=0.3)
parser.add_argument("--seed", type=int, default=1)


def make_load(n_hours, n_meters, rng):
    t = np.arange(n_hours)[None, :]
    phase = rng.uniform(0, 24, size=(n_meters, 1))
    scale = rng.uniform(0.5, 1.5, size=(n_meters, 1))
    daily = np.sin(2 * math.pi * (t + phase) / 24)
    weekly = 0.4 * np.cos(2 * math.pi * t / 168)
    noise = 0.1 * rng.standard_normal((n_meters, n_hours))
    return (scale * (daily + weekly) + noise).astype(np.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, history, horizon, future=None, teacher_forcing=0.0):
        sequence = history.unsqueeze(-1)
        state = None
        forecasts = []
        for step in range(horizon):
            states, state = self.gru(sequence, state)
            prediction = self.out(states[:, -1])
            forecasts.append(prediction)
            nxt = prediction
            if future is not None and torch.rand(()) < teacher_forcing:
                nxt = future[:, step:step + 1]
            sequence = nxt.unsqueeze(1)
        return torch.cat(forecasts, dim=1)


def sample_windows(load, batch_size, history, horizon, rng):
    meters = rng.integers(0, load.shape[0], size=batch_size)
    starts = rng.integers(0, load.shape[1] - history - horizon, size=batch_size)
    index = starts[:, None] + np.arange(history + horizon)[None, :]
    window = torch.from_numpy(load[meters[:, None], index])
    return window[:, :history], window[:, history:]


def main():
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    load = make_load(24 * 7 * 20, 40, rng)
    train, test = load[:, :-24 * 14], load[:, -24 * 14:]
    model = Forecaster(args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()
    for step in range(1, args.steps + 1):
        history, future = sample_windows(train, args.batch_size, args.history, args.horizon, rng)
        forecast = model(history, args.horizon, future, args.teacher_forcing)
        loss = loss_fn(forecast, future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    with torch.no_grad():
        history, future = sample_windows(test, 256, args.history, args.horizon, rng)
        mae = (model(history, args.horizon) - future).abs().mean().item()
    print(f"test MAE {mae:.4f}")


if __name__ == "__main__":
    main()
