"""Tool wear from spindle vibration; windows are prepared by a background thread."""
import queue
import threading
import time

import numpy as np
import torch
from torch import nn

WINDOW, CHANNELS = 1024, 3


class SpindleFeed(threading.Thread):
    """Cuts random windows out of long recordings and scales them."""

    def __init__(self, recordings, wear, batch, seed):
        super().__init__(daemon=True)
        self.recordings, self.wear, self.batch = recordings, wear, batch
        self.rng = np.random.default_rng(seed)
        self.closed = False
        self.slot = queue.Queue(maxsize=1)

    def cut(self):
        which = self.rng.integers(0, len(self.recordings), self.batch)
        begin = self.rng.integers(0, self.recordings.shape[-1] - WINDOW, self.batch)
        cols = begin[:, None] + np.arange(WINDOW)
        x = self.recordings[which[:, None], :, cols].transpose(0, 2, 1)
        x = x / (x.std(axis=2, keepdims=True) + 1e-5)
        return torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(self.wear[which])

    def run(self):
        while not self.closed:
            while self.slot.full() and not self.closed:
                time.sleep(0.05)
            self.slot.put(self.cut())

    def next_batch(self):
        while self.slot.empty():
            time.sleep(0.05)
        return self.slot.get_nowait()


def machine_log(n_tools=24, length=30000, seed=4):
    rng = np.random.default_rng(seed)
    wear = rng.uniform(0, 0.3, n_tools).astype(np.float32)
    t = np.arange(length) / 8192.0
    rec = np.empty((n_tools, CHANNELS, length), dtype=np.float32)
    for i, w in enumerate(wear):
        tone = sum(np.sin(2 * np.pi * 180 * k * t) * np.exp(-k * (0.6 - w)) for k in range(1, 6))
        rec[i] = tone + 0.5 * rng.standard_normal((CHANNELS, length))
    return rec, wear


class WearNet(nn.Module):
    def __init__(self):
        super().__init__()
        chans = [CHANNELS, 16, 32, 48]
        self.body = nn.Sequential(*[
            nn.Sequential(nn.Conv1d(a, b, 9, stride=4, padding=4), nn.BatchNorm1d(b), nn.ReLU())
            for a, b in zip(chans, chans[1:])
        ])
        self.head = nn.Linear(chans[-1], 1)

    def forward(self, x):
        return self.head(self.body(x).mean(2)).squeeze(1)


def train(seconds=18.0, batch=32):
    torch.manual_seed(4)
    feed = SpindleFeed(*machine_log(), batch=batch, seed=4)
    feed.start()
    model = WearNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_avg, n, t0 = None, 0, time.monotonic()
    try:
        while time.monotonic() - t0 < seconds:
            x, wear = feed.next_batch()
            loss = nn.functional.mse_loss(model(x), wear * 10)
            opt.zero_grad()
            loss.backward()
            opt.step()
            value = loss.item()
            loss_avg = value if loss_avg is None else 0.95 * loss_avg + 0.05 * value
            n += 1
            if n % 25 == 0:
                print(f"window batch {n}, smoothed mse {loss_avg:.4f}")
    finally:
        feed.closed = True
    print(f"{n / (time.monotonic() - t0):.2f} steps/s")


if __name__ == "__main__":
    train()
