"""Traffic speed forecasting with a graph convolutional network over road sensors."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
N_SENSORS = 1200
HISTORY, HORIZON = 12, 3
BATCH = 64 if device == "cuda" else 4
SECONDS = 14


def sensor_distances(seed=0):
    rng = np.random.default_rng(seed)
    xy = rng.random((N_SENSORS, 2))
    return np.sqrt(((xy[:, None, :] - xy[None, :, :]) ** 2).sum(-1))


def speeds(distance, steps=600, seed=1):
    rng = np.random.default_rng(seed)
    adj = np.exp(-(distance / 0.045) ** 2)
    smooth = adj / adj.sum(1, keepdims=True)
    base = smooth @ rng.standard_normal((N_SENSORS, 8))
    t = np.arange(steps)[None, :]
    waves = np.stack([np.sin(2 * np.pi * t[0] * (k + 1) / 288) for k in range(8)])
    return (base @ waves).T.astype(np.float32)


def normalised_adjacency(distance, sigma=0.045, cutoff=0.1):
    a = torch.exp(-(torch.from_numpy(distance) / sigma) ** 2)
    a = torch.where(a > cutoff, a, 0.0)
    inv_sqrt = a.sum(1).rsqrt()
    return (inv_sqrt[:, None] * a * inv_sqrt[None, :]).float().to(device)


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.self_weight = nn.Linear(n_in, n_out)
        self.neighbour_weight = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, a_hat):
        return self.self_weight(x) + torch.matmul(a_hat, self.neighbour_weight(x))


class TrafficGCN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gc1 = GraphConv(HISTORY, hidden)
        self.gc2 = GraphConv(hidden, hidden)
        self.out = nn.Linear(hidden, HORIZON)

    def forward(self, x, a_hat):
        h = F.relu(self.gc1(x, a_hat))
        h = F.relu(self.gc2(h, a_hat))
        return self.out(h)


def main():
    torch.manual_seed(0)
    distance = sensor_distances()
    series = torch.from_numpy(speeds(distance)).to(device)
    model = TrafficGCN().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    offsets = torch.arange(HISTORY + HORIZON, device=device)
    a_hat = normalised_adjacency(distance)
    step, t0 = 0, time.time()
    while time.time() - t0 < SECONDS:
        start = torch.randint(0, len(series) - HISTORY - HORIZON, (BATCH, 1), device=device)
        window = series[start + offsets].transpose(1, 2)
        pred = model(window[..., :HISTORY], a_hat)
        loss = F.l1_loss(pred, window[..., HISTORY:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} mae {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
