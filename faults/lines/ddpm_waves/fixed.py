"""DDPM on 1-D waveforms (1 x 128 samples), epsilon prediction."""
import math

import torch
from torch import nn
import torch.nn.functional as F

T = 1000
LENGTH = 128
BATCH = 32
STEPS = 850


def cosine_beta(t, s=0.008):
    f0 = math.cos((t / T + s) / (1 + s) * math.pi / 2) ** 2
    f1 = math.cos(((t + 1) / T + s) / (1 + s) * math.pi / 2) ** 2
    return min(1 - f1 / f0, 0.999)


def schedule():
    """Cumulative signal rates for every diffusion step."""
    betas = torch.tensor([cosine_beta(t) for t in range(T)])
    bars = []
    prod = torch.tensor(1.0)
    for b in betas:
        prod = prod * (1.0 - b)
        bars.append(prod)
    return torch.stack(bars)


ABAR = schedule()


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
    a = t[:, None].float() * freqs[None]
    return torch.cat([a.sin(), a.cos()], -1)


class Block(nn.Module):
    def __init__(self, ch, emb, dil):
        super().__init__()
        self.n = nn.GroupNorm(8, ch)
        self.c1 = nn.Conv1d(ch, ch, 3, padding=dil, dilation=dil)
        self.c2 = nn.Conv1d(ch, ch, 1)
        self.e = nn.Linear(emb, ch)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n(x))) + self.e(e)[:, :, None]
        return x + self.c2(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, ch=32, emb=64):
        super().__init__()
        self.emb = emb
        self.inp = nn.Conv1d(1, ch, 3, padding=1)
        self.mlp = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.blocks = nn.ModuleList(Block(ch, emb, 2 ** i) for i in range(4))
        self.out = nn.Conv1d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        e = self.mlp(timestep_embedding(t, self.emb))
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, e)
        return self.out(F.silu(h))


def q_sample(x0, t, noise):
    signal = ABAR.sqrt()[t].view(-1, 1, 1)
    sigma = (1 - ABAR).sqrt()[t].view(-1, 1, 1)
    return signal * x0 + sigma * noise


def p_losses(model, x0):
    t = torch.randint(0, T, (x0.size(0),))
    noise = torch.randn_like(x0)
    return F.mse_loss(model(q_sample(x0, t, noise), t), noise)


def waves(n):
    x = torch.linspace(0, 1, LENGTH)
    f = torch.randint(1, 9, (n, 1))
    ph = torch.rand(n, 1) * 2 * math.pi
    return (torch.sin(2 * math.pi * f * x + ph) * torch.rand(n, 1)).unsqueeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    data = waves(8192)
    model = Denoiser()
    ema = {k: v.clone() for k, v in model.state_dict().items()}
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    running = None
    for step in range(STEPS):
        x0 = data[torch.randint(0, len(data), (BATCH,))]
        loss = p_losses(model, x0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for k, v in model.state_dict().items():
                ema[k].lerp_(v, 0.005)
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if step % 100 == 0:
            print(f"{step:5d} loss {running:.4f}", flush=True)
