"""Denoising diffusion on satellite cloud latents."""
import math
import os
import time

import torch
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BATCH, CHANNELS, SIDE, WIDTH, DEPTH = (512, 8, 32, 192, 60) if CUDA else (4, 8, 8, 16, 4)
SECONDS = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.time = nn.Linear(64, width)
        self.mix = nn.Conv2d(width, width, 1)

    def forward(self, x, t):
        h = self.conv(self.norm(x)) + self.time(t)[:, :, None, None]
        return x + self.mix(torch.nn.functional.silu(h))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv2d(CHANNELS, WIDTH, 4, stride=4)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(DEPTH))
        self.out = nn.ConvTranspose2d(WIDTH, CHANNELS, 4, stride=4)
        self.register_buffer("freqs", torch.exp(torch.linspace(0, math.log(1000), 32)))

    def forward(self, x, t):
        angles = t[:, None] * self.freqs
        t = torch.cat([angles.sin(), angles.cos()], 1)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, t)
        return self.out(h)


class Diffusion:
    def __init__(self):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        self.model = Denoiser().to(DEVICE, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=CUDA)
        self.latents = torch.randn(4096 if CUDA else 64, CHANNELS, SIDE, SIDE, device=DEVICE)

    def corrupt(self, x):
        t = torch.rand(len(x), device=DEVICE)
        noise = torch.randn_like(x)
        level = t[:, None, None, None]
        return (1 - level).sqrt() * x + level.sqrt() * noise, t, noise

    def step(self):
        x = self.latents[torch.randint(0, len(self.latents), (BATCH,), device=DEVICE)]
        noisy, t, noise = self.corrupt(x)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            predicted = self.model(noisy.to(memory_format=torch.channels_last), t)
        loss = nn.functional.mse_loss(predicted.float(), noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


if __name__ == "__main__":
    run = Diffusion()
    for _ in range(8):
        run.step()
    start, steps = time.time(), 0
    while time.time() - start < SECONDS:
        loss = run.step()
        steps += 1
    print(f"{steps / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
