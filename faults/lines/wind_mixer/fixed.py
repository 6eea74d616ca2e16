"""All-MLP mixer for wind-farm sensor sequences, with our own activation and norm."""
import time

import torch
from torch import nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(303)
torch.set_float32_matmul_precision("high")

if device == "cuda":
    TURBINES, STEPS, DIM, DEPTH, BATCH = 64, 256, 1024, 8, 128
else:
    TURBINES, STEPS, DIM, DEPTH, BATCH = 8, 32, 32, 2, 4


def smooth_gate(x):
    return F.gelu(x, approximate="tanh")


class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.g, self.b, self.eps = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim)), eps

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.g, self.b, self.eps)


class FeedForward(nn.Module):
    def __init__(self, dim, mult):
        super().__init__()
        self.up, self.down = nn.Linear(dim, mult * dim), nn.Linear(mult * dim, dim)

    def forward(self, x):
        return self.down(smooth_gate(self.up(x)))


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = Norm(DIM), Norm(DIM)
        self.time_mix = FeedForward(STEPS, 2)
        self.chan_mix = FeedForward(DIM, 4)

    def forward(self, x):
        x = x + self.time_mix(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan_mix(self.n2(x))


class WindMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(TURBINES, DIM)
        self.blocks = nn.Sequential(*(MixerBlock() for _ in range(DEPTH)))
        self.norm = Norm(DIM)
        self.out = nn.Linear(DIM, TURBINES)

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.inp(x)))[:, -1])


def farm_record(length):
    t = torch.arange(length, device=device).unsqueeze(1)
    speed = torch.sin(t / 50 + torch.arange(TURBINES, device=device) / 5)
    return speed + 0.2 * torch.randn(length, TURBINES, device=device)


def main():
    record = farm_record(500_000 if device == "cuda" else 5000)
    window = torch.arange(STEPS + 1, device=device)
    model = WindMixer().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    start, n = time.monotonic(), 0
    while time.monotonic() - start < 18.0:
        at = torch.randint(0, len(record) - STEPS - 1, (BATCH, 1), device=device)
        seq = record[at + window]
        with torch.autocast(device, dtype=torch.bfloat16):
            pred = model(seq[:, :-1])
        loss = F.mse_loss(pred.float(), seq[:, -1])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        n += 1
        if n % 50 == 0:
            print(f"{n} mse {loss.item():.4f}")
    print(f"{n} steps, {(time.monotonic() - start) / n * 1000:.1f} ms/step")


if __name__ == "__main__":
    main()
