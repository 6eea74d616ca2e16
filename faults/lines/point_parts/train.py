"""Label the parts of scanned objects; clouds have different numbers of points."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
cuda = device.type == "cuda"
CLOUDS, POINTS, DIM, DEPTH = (48, 1024, 384, 24) if cuda else (4, 64, 32, 3)


class PointBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.context = nn.Linear(dim, dim)

    def forward(self, h, valid):
        update = torch.zeros_like(h)
        update[valid] = self.mlp(self.norm(h[valid])).to(h.dtype)
        pooled = update.sum(1, keepdim=True) / valid.sum(1)[:, None, None]
        return h + update + self.context(pooled)


class PartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, DIM)
        self.blocks = nn.ModuleList(PointBlock(DIM) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, 50)

    def forward(self, points, valid):
        h = self.embed(points)
        for block in self.blocks:
            h = block(h, valid)
        return self.head(h)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    points = torch.randn(16, CLOUDS, POINTS, 6, device=device)
    counts = torch.randint(POINTS * 7 // 8, POINTS + 1, (16, CLOUDS, 1), device=device)
    valid = torch.arange(POINTS, device=device) < counts
    parts = torch.randint(0, 50, (16, CLOUDS, POINTS), device=device)
    parts.masked_fill_(~valid, -100)
    model = PartNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=cuda)
    n, t0 = 0, None
    while True:
        k = n % 16
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(points[k], valid[k])
            loss = F.cross_entropy(logits.flatten(0, 1), parts[k].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        n += 1
        if n == 10:
            t0 = time.perf_counter()
        if t0 and time.perf_counter() - t0 > seconds:
            break
    print(f"steps/s {(n - 10) / (time.perf_counter() - t0):.2f}, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
