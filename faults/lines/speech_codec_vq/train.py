import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def babble(n, length, seed):
    """Voiced-like waveforms: a few harmonics with slow amplitude changes."""
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length) / 8000
    f0 = 90 + 160 * torch.rand(n, 1, generator=g)
    wave = torch.zeros(n, length)
    for k in range(1, 6):
        depth = torch.rand(n, 1, generator=g) / k
        slow = 1 + 0.5 * torch.sin(2 * math.pi * (1 + 3 * torch.rand(n, 1, generator=g)) * t)
        wave += depth * slow * torch.sin(2 * math.pi * k * f0 * t)
    return wave / wave.abs().amax(1, keepdim=True)


class Quantizer(nn.Module):
    def __init__(self, codes, dim, decay=0.98):
        super().__init__()
        self.decay = decay
        self.book = nn.Buffer(torch.randn(codes, dim) * 0.3)
        self.mass = nn.Buffer(torch.ones(codes))
        self.total = nn.Buffer(self.book.clone())

    def nearest(self, flat):
        gap = flat.unsqueeze(1) - self.book.unsqueeze(0)
        return (gap**2).sum(-1).argmin(1)

    @torch.no_grad()
    def follow(self, flat, idx):
        count = torch.bincount(idx, minlength=len(self.book)).float()
        summed = torch.zeros_like(self.book).index_add_(0, idx, flat)
        self.mass.lerp_(count, 1 - self.decay)
        self.total.lerp_(summed, 1 - self.decay)
        self.book.copy_(self.total / self.mass.clamp_min(1e-2).unsqueeze(1))

    def forward(self, z):
        b, d, t = z.shape
        flat = z.transpose(1, 2).reshape(-1, d)
        with torch.no_grad():
            idx = self.nearest(flat)
        if self.training:
            self.follow(flat.detach(), idx)
        q = self.book[idx].view(b, t, d).transpose(1, 2)
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit, idx


class Codec(nn.Module):
    def __init__(self, width=24, dim=32, codes=192):
        super().__init__()

        def down(a, b, s):
            return nn.Sequential(nn.Conv1d(a, b, 2 * s, s, s // 2), nn.ELU(), nn.Conv1d(b, b, 3, padding=1), nn.ELU())

        def up(a, b, s):
            return nn.Sequential(nn.ConvTranspose1d(a, b, 2 * s, s, s // 2), nn.ELU(), nn.Conv1d(b, b, 3, padding=1))

        self.encoder = nn.Sequential(down(1, width, 4), down(width, 2 * width, 4), nn.Conv1d(2 * width, dim, 1))
        self.quantizer = Quantizer(codes, dim)
        self.decoder = nn.Sequential(nn.Conv1d(dim, 2 * width, 1), up(2 * width, width, 4), nn.ELU(), up(width, 1, 4))

    def forward(self, wave):
        z = self.encoder(wave.unsqueeze(1))
        q, commit, idx = self.quantizer(z)
        return self.decoder(q).squeeze(1), commit, idx


def spectral(a, b, window):
    def magnitude(x):
        return torch.stft(x, 256, 128, window=window, return_complex=True).abs()
    return F.l1_loss(magnitude(a), magnitude(b))


def main():
    torch.manual_seed(81)
    clips = babble(500, 4096, seed=81)
    window = torch.hann_window(256)
    codec = Codec()
    opt = torch.optim.AdamW(codec.parameters(), lr=5e-4, betas=(0.8, 0.99))
    used = torch.zeros(192, dtype=torch.bool)
    step = 0
    start = time.monotonic()
    while time.monotonic() - start < 12:
        wave = clips[torch.randint(0, len(clips), (8,))]
        back, commit, idx = codec(wave)
        loss = F.l1_loss(back, wave) + 0.1 * spectral(back, wave, window) + 0.25 * commit
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        used[idx] = True
        step += 1
        if step % 50 == 0:
            print(f"{step:5d}  loss {loss.item():.4f}  commit {commit.item():.4f}", flush=True)
    print(f"codes used: {int(used.sum())}")
    print(f"steps: {step}")


if __name__ == "__main__":
    main()
