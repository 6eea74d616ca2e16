"""Residual network over a handful of scales, summed in a plain Python loop."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class ScaleBranch(nn.Module):
    def __init__(self, ch, stride):
        super().__init__()
        self.stride = stride
        self.conv = nn.Conv1d(ch, ch, 5, padding=2)
        self.norm = nn.GroupNorm(4, ch)

    def forward(self, x):
        h = F.avg_pool1d(x, self.stride) if self.stride > 1 else x
        h = F.silu(self.norm(self.conv(h)))
        if self.stride > 1:
            h = F.interpolate(h, size=x.shape[-1])
        return h


class MultiScaleBlock(nn.Module):
    def __init__(self, ch, strides=(1, 2, 4)):
        super().__init__()
        self.branches = nn.ModuleList(ScaleBranch(ch, s) for s in strides)

    def forward(self, x):
        out = x
        for branch in self.branches:
            out = out + branch(x)
        return out


class SeismicNet(nn.Module):
    def __init__(self, ch=32, blocks=3):
        super().__init__()
        self.stem = nn.Conv1d(3, ch, 7, stride=2, padding=3)
        self.blocks = nn.ModuleList(MultiScaleBlock(ch) for _ in range(blocks))
        self.head = nn.Conv1d(ch, 1, 1)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(1)


def traces(n=3000, length=256):
    g = torch.Generator().manual_seed(14)
    onset = torch.randint(30, length - 30, (n,), generator=g)
    t = torch.arange(length)
    after = (t[None, :] >= onset[:, None]).float()
    decay = torch.exp(-(t[None, :] - onset[:, None]).clamp(min=0) / 20.0) * after
    x = 0.5 * torch.randn(n, 3, length, generator=g) + 2 * decay[:, None, :]
    return x, after[:, ::2].contiguous()


def train(seconds=14, log_every=50):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in traces())
    model = SeismicNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = 512 if device == "cuda" else 16
    step, epoch, t0 = 0, 0, time.time()
    while time.time() - t0 < seconds:
        total = torch.zeros((), device=device)
        for rows in torch.randperm(len(x), device=device).split(batch):
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
            step += 1
            if step % log_every == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            if time.time() - t0 >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * batch / dt:.1f} samples/s")


train()
