"""Residual MLP surrogate for a parametric PDE solution operator."""
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    n_params: int = 16
    n_grid: int = 64
    width: int = 160
    depth: int = 20
    lr: float = 1e-3
    seconds: float = 14.0
    log_every: int = 100


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.fc(self.norm(x)))


class Surrogate(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.inp = nn.Linear(c.n_params, c.width)
        self.blocks = nn.Sequential(*[ResBlock(c.width) for _ in range(c.depth)])
        self.out = nn.Linear(c.width, c.n_grid)

    def forward(self, p):
        return self.out(self.blocks(self.inp(p)))


def check_output(module, inputs, output):
    for t in (*inputs, output):
        if not torch.isfinite(t).all():
            raise FloatingPointError(f"bad values around {module}")


def check_grad(module, grad_input, grad_output):
    for t in (*grad_input, *grad_output):
        if t is not None and not torch.isfinite(t).all():
            raise FloatingPointError(f"bad gradient around {module}")


def register_checks(model):
    for m in model.modules():
        m.register_forward_hook(check_output)
        m.register_full_backward_hook(check_grad)


def solution_samples(c, n=20000):
    g = torch.Generator().manual_seed(6)
    p = torch.rand(n, c.n_params, generator=g) * 2 - 1
    x = torch.linspace(0, 1, c.n_grid)
    k = torch.arange(1, c.n_params + 1).float()
    modes = torch.sin(torch.pi * k[:, None] * x[None, :]) / k[:, None]
    return p, torch.tanh(p @ modes)


def main():
    c = Config()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 8192 if device == "cuda" else 192
    torch.manual_seed(0)
    p, u = (t.to(device) for t in solution_samples(c))
    model = Surrogate(c).to(device)
    register_checks(model)
    opt = torch.optim.AdamW(model.parameters(), lr=c.lr, fused=True)
    running = torch.zeros((), device=device)
    step, t0 = 0, time.time()
    while time.time() - t0 < c.seconds:
        idx = torch.randint(0, len(p), (batch,), device=device)
        loss = F.mse_loss(model(p[idx]), u[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.detach()
        step += 1
        if step % c.log_every == 0:
            print(f"{step:6d}  mse {running.item() / c.log_every:.6f}")
            running.zero_()
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"speed: {step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
