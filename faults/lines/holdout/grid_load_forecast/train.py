"""Forecast the load of many grid substations with a patch transformer."""
import os
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Settings:
    seed = 77
    seconds = 18
    horizon = 96
    patch = 16
    if device == "cuda":
        history, dim, heads, depth, batch, series = 4096, 1024, 16, 12, 64, 2000
    else:
        history, dim, heads, depth, batch, series = 256, 32, 2, 2, 8, 20
    save_every = 20
    report_every = 100


class PatchFormer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.patch = s.patch
        n = s.history // s.patch
        self.inp = nn.Linear(s.patch, s.dim)
        self.pos = nn.Parameter(torch.zeros(n, s.dim))
        layer = nn.TransformerEncoderLayer(s.dim, s.heads, 4 * s.dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, s.depth, enable_nested_tensor=False)
        self.out = nn.Linear(s.dim, s.horizon)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        tokens = ((x - mean) / std).unflatten(1, (-1, self.patch))
        h = self.body(self.inp(tokens) + self.pos)
        return self.out(h.mean(1)) * std + mean


class Trainer:
    def __init__(self, s, folder):
        self.s = s
        self.path = os.path.join(folder, "last.pt")
        torch.manual_seed(s.seed)
        t = torch.arange(s.history * 4, device=device)
        daily = torch.sin(t * 2 * torch.pi / 96) * torch.rand(s.series, 1, device=device)
        weekly = torch.sin(t * 2 * torch.pi / 672) * torch.rand(s.series, 1, device=device)
        self.load = daily + weekly + 0.1 * torch.randn(s.series, len(t), device=device)
        self.window = torch.arange(s.history + s.horizon, device=device)
        self.model = PatchFormer(s).to(device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.sched = torch.optim.lr_scheduler.LinearLR(self.opt, 0.01, 1.0, total_iters=500)
        self.step = 0

    def batch(self):
        s = self.s
        row = torch.randint(0, s.series, (s.batch, 1), device=device)
        start = torch.randint(0, self.load.shape[1] - len(self.window), (s.batch, 1), device=device)
        w = self.load[row, start + self.window]
        return w[:, : s.history], w[:, s.history :]

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "opt": self.opt.state_dict(),
            "sched": self.sched.state_dict(),
            "step": self.step,
        }
        torch.save(state, self.path + ".tmp")
        os.replace(self.path + ".tmp", self.path)

    def fit(self):
        t0 = time.monotonic()
        while time.monotonic() - t0 < self.s.seconds:
            x, y = self.batch()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.l1_loss(self.model(x), y)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            self.sched.step()
            self.step += 1
            if self.step % self.s.report_every == 0:
                print(f"step {self.step}: mae {loss.item():.4f}")
            if self.step % self.s.save_every == 0:
                self.save()
        dt = time.monotonic() - t0
        print(f"{self.step} steps in {dt:.1f} s ({self.step / dt:.2f}/s), mae {loss.item():.4f}")


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    with tempfile.TemporaryDirectory() as folder:
        Trainer(Settings(), folder).fit()
