import math
import time

import torch
from torch import nn
from torch.nn import functional as F


def mixture_latents(n, dim, seed):
    g = torch.Generator().manual_seed(seed)
    modes = torch.randn(12, dim, generator=g) * 1.5
    which = torch.randint(0, 12, (n,), generator=g)
    return modes[which] + 0.3 * torch.randn(n, dim, generator=g), which


class Schedule:
    def __init__(self, steps):
        t = torch.linspace(0, 1, steps + 1)
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2).square()
        self.signal = (bar[1:] / bar[0]).sqrt()
        self.noise = (1 - bar[1:] / bar[0]).clamp_min(1e-5).sqrt()
        self.steps = steps

    def corrupt(self, x, t, eps):
        return self.signal[t, None] * x + self.noise[t, None] * eps


class Block(nn.Module):
    def __init__(self, width, cond):
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.mod = nn.Linear(cond, 2 * width)
        self.a = nn.Linear(width, 2 * width)
        self.b = nn.Linear(2 * width, width)

    def forward(self, x, c):
        scale, shift = self.mod(c).chunk(2, -1)
        return x + self.b(F.silu(self.a(self.norm(x) * (1 + scale) + shift)))


class Denoiser(nn.Module):
    def __init__(self, dim, classes, width=256, cond=128, depth=4):
        super().__init__()
        self.freq = nn.Buffer(torch.exp(-torch.arange(cond // 2) * 9.0 / (cond // 2)))
        self.label = nn.Embedding(classes, cond)
        self.inp = nn.Linear(dim, width)
        self.blocks = nn.ModuleList(Block(width, cond) for _ in range(depth))
        self.out = nn.Linear(width, dim)

    def forward(self, x, t, y):
        angle = t.unsqueeze(1) * self.freq
        c = torch.cat([angle.sin(), angle.cos()], 1) + self.label(y)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, c)
        return self.out(h)


class WeightAverage:
    """Equal-weight average of the weights along the run."""

    def __init__(self, model):
        self.model = model
        self.count = 0
        self.mean = [torch.zeros_like(p) for p in self.model.parameters()]

    @torch.no_grad()
    def add(self):
        self.count += 1
        torch._foreach_lerp_(self.mean, list(self.model.parameters()), 1 / self.count)

    def distance(self):
        with torch.no_grad():
            return sum(float((a - p).square().sum()) for a, p in zip(self.mean, self.model.parameters())) ** 0.5


def fit(seconds, batch=192, dim=48, every=2):
    torch.manual_seed(17)
    data, labels = mixture_latents(20_000, dim, seed=17)
    schedule = Schedule(400)
    net = Denoiser(dim, 12)
    average = WeightAverage(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)

    step, smooth = 0, 1.0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        idx = torch.randint(0, len(data), (batch,))
        x, y = data[idx], labels[idx]
        t = torch.randint(0, schedule.steps, (batch,))
        eps = torch.randn_like(x)
        loss = F.mse_loss(net(schedule.corrupt(x, t, eps), t, y), eps)
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth += 0.05 * (loss.item() - smooth)
        step += 1
        if step % every == 0:
            average.add()
        if step % 100 == 0:
            print(f"{step:5d}  loss {smooth:.4f}", flush=True)
    return step, smooth, average.distance()


if __name__ == "__main__":
    n, loss, gap = fit(12.0)
    print(f"loss {loss:.4f}, distance to the average {gap:.3f}")
    print(f"steps: {n}")
