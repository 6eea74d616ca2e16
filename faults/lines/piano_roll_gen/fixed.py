"""Autoregressive model of piano performances as event tokens."""
import time

import torch
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
FULL = device == "cuda"


class Config:
    vocab = 388
    ctx = 4096 if FULL else 96
    dim = 512 if FULL else 32
    heads = 8 if FULL else 2
    depth = 6 if FULL else 2
    batch = 4
    lr = 3e-4
    budget = 18.0


class SelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h = cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.out = nn.Linear(cfg.dim, cfg.dim, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        return self.out(y)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = SelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Composer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(0.01 * torch.randn(cfg.ctx, cfg.dim))
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos[: idx.shape[1]]
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def performances(cfg, n=2_000_000 if FULL else 20_000):
    """A random walk over event ids, so there is something to learn."""
    jumps = torch.randint(-3, 4, (n,), device=device)
    return jumps.cumsum(0).remainder(cfg.vocab)


def main():
    cfg = Config()
    torch.manual_seed(1912)
    torch.set_float32_matmul_precision("high")
    events = performances(cfg)
    model = Composer(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), fused=True)
    offsets = torch.arange(cfg.ctx + 1, device=device)

    t0, step = time.monotonic(), 0
    while time.monotonic() - t0 < cfg.budget:
        starts = torch.randint(0, len(events) - cfg.ctx - 1, (cfg.batch, 1), device=device)
        seq = events[starts + offsets]
        with torch.autocast(device, torch.bfloat16):
            loss = model(seq[:, :-1], seq[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        step += 1
        if step % 50 == 0:
            print(f"{step:5d}  nll {loss.item():.4f}")
    rate = step * cfg.batch * cfg.ctx / (time.monotonic() - t0)
    print(f"{step} steps, {rate:,.0f} tokens/s")


if __name__ == "__main__":
    main()
