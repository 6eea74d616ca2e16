import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
config = dict(length=4096, batch=8, dim=512, heads=8, depth=4) if cuda else dict(length=64, batch=2, dim=32, heads=2, depth=2)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = scores.softmax(-1).to(v.dtype)
        h = weights @ v
        return self.out(h.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class GenomeModel(nn.Module):
    def __init__(self, length, dim, heads, depth, **_):
        super().__init__()
        self.bases = nn.Embedding(6, dim)
        self.position = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(depth)))
        self.head = nn.Linear(dim, 6)

    def forward(self, x):
        return self.head(self.layers(self.bases(x) + self.position))


def train():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    genome = torch.randint(0, 5, (256, config["length"]), device=device)
    model = GenomeModel(**config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=cuda)
    n, t0 = 0, None
    while True:
        bases = genome[torch.randint(0, 256, (config["batch"],), device=device)]
        hidden = torch.rand(bases.shape, device=device) < 0.15
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(bases.masked_fill(hidden, 5))
            loss = F.cross_entropy(logits.flatten(0, 1), bases.masked_fill(~hidden, -100).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += 1
        if n == 5:
            t0 = time.time()
        if t0 and time.time() - t0 > limit:
            return (n - 5) / (time.time() - t0)


if __name__ == "__main__":
    print(f"{train():.2f} steps per second")
