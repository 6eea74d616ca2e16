"""Physics-informed ensemble: many small residual nets trained jointly."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x + self.scale * self.fc2(torch.tanh(self.fc1(self.norm(x))))


class DeepField(nn.Module):
    def __init__(self, n_in=3, width=64, depth=40):
        super().__init__()
        self.embed = nn.Linear(n_in, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        h = self.embed(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h)


def wave_samples(n=200_000):
    g = torch.Generator().manual_seed(0)
    xyt = torch.rand(n, 3, generator=g) * 2 - 1
    u = torch.sin(3 * math.pi * xyt[:, 0]) * torch.cos(2 * math.pi * xyt[:, 1] - 4 * xyt[:, 2])
    return xyt, u.unsqueeze(1)


def main(max_seconds=14):
    torch.manual_seed(0)
    xyt, u = (t.to(device) for t in wave_samples())
    model = DeepField().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batch = 8192 if device == "cuda" else 128
    step, begin = 0, time.time()
    while time.time() - begin < max_seconds:
        idx = torch.randint(0, len(u), (batch,), device=device)
        loss = F.mse_loss(model(xyt[idx]), u[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}: mse {loss.item():.5f}")
    if device == "cuda":
        torch.cuda.synchronize()
    took = time.time() - begin
    print(f"{step} steps, {step / took:.2f} steps/s, {step * batch / took:.0f} samples/s")


main()
