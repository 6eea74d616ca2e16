"""Keyword spotting on raw 16 kHz audio with noise augmentation."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16_000
CROP = RATE // 2


def synth_recordings(n=60, seconds=20, seed=1):
    rng = np.random.default_rng(seed)
    t = np.arange(seconds * RATE, dtype=np.float32) / RATE
    clips = np.empty((n, t.size), dtype=np.int16)
    for i in range(n):
        clips[i] = 8000 * np.sin(2 * np.pi * (150 + 30 * (i % 10)) * t + rng.random())
    return clips, np.arange(n) % 10


class NoisyClips(Dataset):
    def __init__(self, clips, labels, per_clip=50, snr=(5.0, 25.0)):
        self.clips, self.labels = clips, labels
        self.per_clip, self.snr = per_clip, snr
        self.rng = None

    def __len__(self):
        return len(self.clips) * self.per_clip

    def augment(self, wave):
        noise = self.rng.standard_normal(wave.size, dtype=np.float32)
        snr = self.rng.uniform(*self.snr)
        gain = np.float32(np.sqrt(np.mean(wave ** 2) / 10 ** (snr / 10)))
        wave = wave + gain * noise
        wave[1:] -= np.float32(0.97) * wave[:-1]
        return wave

    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        k = i // self.per_clip
        start = self.rng.integers(0, self.clips.shape[1] - CROP)
        wave = self.clips[k, start:start + CROP].astype(np.float32) / 32768
        wave = self.augment(wave)
        return torch.from_numpy(wave.copy()), self.labels[k]


class M5(nn.Module):
    def __init__(self, classes=10, c=48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, c, 80, stride=8), nn.BatchNorm1d(c), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(c, c, 3), nn.BatchNorm1d(c), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(c, 2 * c, 3), nn.BatchNorm1d(2 * c), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(2 * c, 2 * c, 3), nn.BatchNorm1d(2 * c), nn.ReLU())
        self.fc = nn.Linear(2 * c, classes)

    def forward(self, x):
        return self.fc(self.features(x.unsqueeze(1)).mean(-1))


def evaluate_line(step, loss, t0):
    print(f"{time.time() - t0:5.1f}s step {step:4d} loss {loss:.3f}")


def train(batch_size=32, budget=14.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    clips, labels = synth_recordings()
    loader = DataLoader(NoisyClips(clips, labels), batch_size, shuffle=True, drop_last=True,
                        num_workers=2, persistent_workers=True)
    net = M5().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    t0, step = time.time(), 0
    while True:
        for wave, label in loader:
            wave, label = wave.to(device), label.to(device)
            loss = F.cross_entropy(net(wave), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                evaluate_line(step, loss.item(), t0)
            if time.time() - t0 > budget:
                took = time.time() - t0
                return step / took, step * batch_size / took


if __name__ == "__main__":
    torch.manual_seed(0)
    sps, smp = train()
    print(f"throughput {sps:.2f} steps/s, {smp:.1f} samples/s")
