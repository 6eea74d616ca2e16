"""Tagging bird calls in one-second field recordings."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SR = 16000
N_FFT = 1024
HOP = 320
N_MELS = 80
SPECIES = 12
MAX_SECONDS = 18.0


def hz_to_mel(f):
    return 2595.0 * np.log10(1.0 + f / 700.0)


def mel_to_hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


def mel_bank(sr, n_fft, n_mels, fmin=60.0):
    edges = mel_to_hz(np.linspace(hz_to_mel(fmin), hz_to_mel(sr / 2), n_mels + 2))
    freqs = np.linspace(0, sr / 2, n_fft // 2 + 1)
    bank = np.zeros((n_mels, len(freqs)), dtype=np.float32)
    for m in range(n_mels):
        left, centre, right = edges[m], edges[m + 1], edges[m + 2]
        for k, f in enumerate(freqs):
            if left < f <= centre:
                bank[m, k] = (f - left) / (centre - left)
            elif centre < f < right:
                bank[m, k] = (right - f) / (right - centre)
    return torch.from_numpy(bank)


class FieldRecordings(Dataset):
    def __init__(self, n_clips=900, seed=3):
        rng = np.random.default_rng(seed)
        t = np.arange(SR) / SR
        self.labels = rng.integers(0, SPECIES, n_clips)
        self.clips = np.empty((n_clips, SR), dtype=np.float32)
        for i, lab in enumerate(self.labels):
            base = 700 + 450 * lab
            chirp = np.sin(2 * np.pi * (base * t + 120 * rng.random() * t ** 2))
            self.clips[i] = chirp * np.exp(-4 * (t - rng.random()) ** 2) + 0.4 * rng.standard_normal(SR)
        self.window = torch.hann_window(N_FFT)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wav = torch.from_numpy(self.clips[i])
        wav = torch.roll(wav, int(torch.randint(0, SR, (1,))))
        spec = torch.stft(wav, N_FFT, HOP, window=self.window, return_complex=True).abs() ** 2
        bank = mel_bank(SR, N_FFT, N_MELS)
        mel = torch.log(bank @ spec + 1e-6)
        return mel.unsqueeze(0), int(self.labels[i])


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


def build_model():
    return nn.Sequential(
        nn.BatchNorm2d(1), block(1, 16), block(16, 32), block(32, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, SPECIES),
    )


def main():
    torch.manual_seed(11)
    loader = DataLoader(FieldRecordings(), batch_size=32, shuffle=True, drop_last=True)
    model = build_model()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    start = time.monotonic()
    step, epoch = 0, 0
    while time.monotonic() - start < MAX_SECONDS:
        for mel, y in loader:
            loss = F.cross_entropy(model(mel), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            if time.monotonic() - start > MAX_SECONDS:
                break
        epoch += 1
    print(f"finished: {step} steps, {step / (time.monotonic() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
