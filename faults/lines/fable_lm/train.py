"""Decoder-only language model over token ids that fit in GPU memory."""
import math
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


@dataclass
class Config:
    vocab: int = 16_384 if CUDA else 256
    length: int = 1024 if CUDA else 32
    dim: int = 1280 if CUDA else 32
    heads: int = 10 if CUDA else 2
    depth: int = 10 if CUDA else 2
    batch: int = 16 if CUDA else 2
    lr: float = 3e-4
    seconds: float = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.proj = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.up, self.down = nn.Linear(c.dim, 4 * c.dim), nn.Linear(4 * c.dim, c.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(h.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class FableLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c.vocab, c.dim)
        self.places = nn.Embedding(c.length, c.dim)
        self.blocks = nn.Sequential(*(Block(c) for _ in range(c.depth)))
        self.norm = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)

    def forward(self, ids):
        h = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(h)))


def main(c):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    corpus = torch.randint(0, c.vocab, (4_000_000 if CUDA else 20_000,), device=DEVICE)
    offsets = torch.arange(c.length + 1, device=DEVICE)
    model = FableLM(c).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=(0.9, 0.95), fused=CUDA)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * min(s / 5000, 1))))
    step, start = 0, None
    while start is None or time.time() - start < c.seconds:
        at = torch.randint(0, len(corpus) - c.length - 1, (c.batch, 1), device=DEVICE)
        window = corpus[at + offsets]
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = model(window[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        step += 1
        if step == 8:
            start = time.time()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    print(f"{(step - 8) / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main(Config())
