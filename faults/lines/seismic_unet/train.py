"""Pick first arrivals in seismic traces; no DataLoader, batches are cut from memory."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TRACES, LENGTH = 1500, 1024


def shots(seed=70):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((TRACES, LENGTH), dtype=np.float32) * 0.3
    onset = rng.integers(100, LENGTH - 200, TRACES)
    t = np.arange(LENGTH, dtype=np.float32)
    late = t[None] - onset[:, None]
    data += np.where(late > 0, np.sin(late * 0.4) * np.exp(-late.clip(0) / 80), 0).astype(np.float32)
    return data, onset


def heatmaps(onset, width=6.0):
    t = np.arange(LENGTH, dtype=np.float32)
    return np.exp(-0.5 * ((t[None] - onset[:, None]) / width) ** 2).astype(np.float32)


def batch_source(data, target, batch_size, rng):
    while True:
        order = rng.permutation(len(data))
        for k in range(0, len(order) - batch_size + 1, batch_size):
            rows = np.sort(order[k:k + batch_size])
            x = data[rows]
            x = x * rng.uniform(0.7, 1.3, (batch_size, 1)).astype(np.float32)
            x = x / (np.abs(x).max(axis=1, keepdims=True) + 1e-6)
            yield torch.from_numpy(x), torch.from_numpy(target[rows])


def double(i, o):
    return nn.Sequential(nn.Conv1d(i, o, 7, padding=3), nn.BatchNorm1d(o), nn.ReLU(),
                         nn.Conv1d(o, o, 7, padding=3), nn.BatchNorm1d(o), nn.ReLU())


class Picker(nn.Module):
    def __init__(self, c):
        super().__init__()
        sizes = [c, 2 * c, 4 * c, 8 * c]
        self.down = nn.ModuleList(double(i, o) for i, o in zip([1] + sizes[:-1], sizes))
        self.up = nn.ModuleList(double(a + b, b) for a, b in zip(sizes[:0:-1], sizes[-2::-1]))
        self.out = nn.Conv1d(c, 1, 1)

    def forward(self, x):
        x, skips = x.unsqueeze(1), []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool1d(x, 2))
            skips.append(x)
        for block, skip in zip(self.up, skips[-2::-1]):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), skip], dim=1))
        return self.out(x).squeeze(1)


def main(seconds=14.0):
    torch.manual_seed(70)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    batch_size, width = (128, 64) if cuda else (16, 12)
    data, onset = shots()
    source = batch_source(data, heatmaps(onset), batch_size, np.random.default_rng(1))
    model = Picker(width).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step, t0 = 0, time.perf_counter()
    for x, y in source:
        x, y = x.to(device), y.to(device)
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        if time.perf_counter() - t0 > seconds:
            break
    if cuda:
        torch.cuda.synchronize()
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
