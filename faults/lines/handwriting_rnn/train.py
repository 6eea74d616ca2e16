"""Handwriting synthesis: stacked LSTM with a mixture density output (Graves 2013)."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2013)
device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

HIDDEN = 2048 if GPU else 32
LAYERS = 3 if GPU else 2
BATCH = 512 if GPU else 8
STEPS = 160 if GPU else 20
MIX = 20
LINES = 20_000 if GPU else 100


class Scribe(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, HIDDEN)
        self.rnn = nn.LSTM(HIDDEN, HIDDEN, LAYERS, batch_first=False)
        self.out = nn.Linear(HIDDEN, MIX * 5 + 1)

    def forward(self, strokes):
        h, _ = self.rnn(F.relu(self.inp(strokes)))
        return self.out(h)


def mdn_loss(params, target):
    pen = params[..., 0]
    logit, mx, my, sx, sy = params[..., 1:].chunk(5, -1)
    sx, sy = sx.clamp(-5, 5), sy.clamp(-5, 5)
    zx = (target[..., 0:1] - mx) * torch.exp(-sx)
    zy = (target[..., 1:2] - my) * torch.exp(-sy)
    logp = F.log_softmax(logit, -1) - 0.5 * (zx.square() + zy.square()) - sx - sy - math.log(2 * math.pi)
    return -torch.logsumexp(logp, -1).mean() + F.binary_cross_entropy_with_logits(pen, target[..., 2])


def scribbles():
    t = torch.linspace(0, 30, STEPS + 1, device=device).view(-1, 1)
    speed = 0.5 + torch.rand(LINES, device=device)
    phase = 6.28 * torch.rand(LINES, device=device)
    dx = 0.3 + 0.2 * torch.sin(speed * t + phase)
    dy = torch.cos(1.7 * speed * t + phase)
    lift = (torch.rand(STEPS + 1, LINES, device=device) < 0.05).float()
    data = torch.stack([dx, dy, lift], -1)
    data[..., :2] += 0.05 * torch.randn(STEPS + 1, LINES, 2, device=device)
    return data


def main():
    data = scribbles()
    net = Scribe().to(device)
    net.rnn.flatten_parameters()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    scaler = torch.amp.GradScaler(device, enabled=GPU)
    print(f"{sum(p.numel() for p in net.parameters()) / 1e6:.0f}M parameters")

    t0, n = time.monotonic(), 0
    while time.monotonic() - t0 < 18:
        pick = torch.randint(0, LINES, (BATCH,), device=device)
        seq = data.index_select(1, pick)
        with torch.autocast(device, dtype=torch.float16 if GPU else torch.bfloat16, enabled=GPU):
            params = net(seq[:-1])
        loss = mdn_loss(params.float(), seq[1:])
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        n += 1
        if n % 50 == 0:
            print(f"batch {n}: nll {loss.item():.4f}")
    dt = time.monotonic() - t0
    print(f"{n} batches, {n * BATCH * STEPS / dt:,.0f} strokes/s")


if __name__ == "__main__":
    main()
