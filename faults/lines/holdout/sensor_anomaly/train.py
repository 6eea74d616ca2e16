"""Autoencoder over vibration windows; reconstruction error flags anomalies."""
import time

import torch
import torch.nn.functional as F
from torch import nn

SEED = 8
WINDOW = 256
BATCH = 32
LR = 1e-3
LIMIT = 18.0

torch.manual_seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"
N_WINDOWS = 1_000_000 if device == "cuda" else 20_000
HIDDEN = 1024 if device == "cuda" else 64
torch.set_float32_matmul_precision("high")


def simulate(n):
    t = torch.linspace(0, 6.28, WINDOW, device=device)
    freq = 1 + 9 * torch.rand(n, 1, device=device)
    phase = 6.28 * torch.rand(n, 1, device=device)
    signal = torch.sin(freq * t + phase)
    return signal.add_(0.1 * torch.randn(n, WINDOW, device=device))


class AutoEncoder(nn.Module):
    def __init__(self, window, hidden, code=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(window, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, window),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Fitter:
    def __init__(self, data):
        self.data = data
        self.model = AutoEncoder(WINDOW, HIDDEN).to(device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=LR, fused=True)
        self.seen = 0
        self.deadline = time.monotonic() + LIMIT

    def epoch(self, number):
        order = torch.randperm(len(self.data), device=device)
        total, batches = torch.zeros((), device=device), 0
        for idx in order.split(BATCH):
            x = self.data[idx]
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.mse_loss(self.model(x), x)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            total += loss.detach()
            self.seen += len(idx)
            batches += 1
            if time.monotonic() > self.deadline:
                break
        print(f"epoch {number}: mse {total.item() / batches:.5f} after {self.seen:,} windows")


def main():
    fitter = Fitter(simulate(N_WINDOWS))
    start, number = time.monotonic(), 0
    while time.monotonic() < fitter.deadline:
        fitter.epoch(number)
        number += 1
    print(f"{fitter.seen / (time.monotonic() - start):,.0f} windows/s")


if __name__ == "__main__":
    main()
