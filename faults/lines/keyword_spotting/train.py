import argparse
import math
import time

import numpy as np
import psutil
import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS = ["on", "off", "left", "right", "go", "stop", "up", "down"]


def make_clips(n, rate, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(WORDS), n)
    t = np.arange(rate) / rate
    f0 = 180 + 140 * labels[:, None] + rng.normal(0, 8, (n, 1))
    sweep = rng.uniform(-60, 60, (n, 1))
    wave = np.sin(2 * np.pi * (f0 * t + 0.5 * sweep * t**2))
    wave *= np.exp(-((t - rng.uniform(0.3, 0.7, (n, 1))) ** 2) / 0.05)
    wave += 0.1 * rng.standard_normal((n, rate))
    return torch.from_numpy(wave.astype(np.float32)), torch.from_numpy(labels)


def hz_to_mel(hz):
    return 2595.0 * math.log10(1.0 + hz / 700.0)


def mel_to_hz(mel):
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def triangular_bank(n_mels, n_bins, rate):
    top = hz_to_mel(rate / 2)
    points = torch.tensor([mel_to_hz(top * i / (n_mels + 1)) for i in range(n_mels + 2)])
    freqs = torch.linspace(0, rate / 2, n_bins)
    bank = torch.zeros(n_mels, n_bins)
    for m in range(n_mels):
        lo, mid, hi = points[m], points[m + 1], points[m + 2]
        for k in range(n_bins):
            rising = (freqs[k] - lo) / (mid - lo)
            falling = (hi - freqs[k]) / (hi - mid)
            bank[m, k] = max(0.0, min(rising, falling))
    return bank


class LogMel(nn.Module):
    def __init__(self, rate, n_fft=256, hop=128, n_mels=24):
        super().__init__()
        self.rate, self.n_fft, self.hop, self.n_mels = rate, n_fft, hop, n_mels
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spec.abs().square()
        bank = triangular_bank(self.n_mels, power.shape[1], self.rate).to(power)
        return torch.log(torch.matmul(bank, power) + 1e-5)


class Spotter(nn.Module):
    def __init__(self, rate, width):
        super().__init__()
        self.frontend = LogMel(rate)
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(2 * width, len(WORDS))

    def forward(self, wave):
        return self.head(self.body(self.frontend(wave).unsqueeze(1)).flatten(1))


class StepMonitor:
    """Smooths loss and host load so that the final line says how busy the box was."""

    def __init__(self):
        self.loss = 0.0
        self.load = 0.0

    def tick(self, loss):
        self.loss = 0.95 * self.loss + 0.05 * loss
        self.load = 0.9 * self.load + 0.1 * psutil.cpu_percent(interval=0.04)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=12.0)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--width", type=int, default=24)
    ap.add_argument("--rate", type=int, default=8000)
    args = ap.parse_args()

    torch.manual_seed(7)
    waves, labels = make_clips(1200, args.rate, seed=7)
    model = Spotter(args.rate, args.width)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    monitor = StepMonitor()
    gen = torch.Generator().manual_seed(3)

    steps = 0
    start = time.monotonic()
    while time.monotonic() - start < args.seconds:
        for idx in torch.randperm(len(waves), generator=gen).split(args.batch):
            loss = F.cross_entropy(model(waves[idx]), labels[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            monitor.tick(loss.item())
            steps += 1
            if time.monotonic() - start >= args.seconds:
                break
    print(f"loss {monitor.loss:.3f}  load {monitor.load:.0f}%")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
