"""Code model: decoder-only transformer, compiled block by block, two micro-batches per update."""
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Args:
    vocab: int = 16384
    ctx: int = 1024
    dim: int = 2048
    heads: int = 16
    depth: int = 8
    micro: int = 16
    accumulate: int = 2
    lr: float = 2e-4
    seconds: float = 18.0


@dataclass
class TinyArgs(Args):
    vocab: int = 100
    ctx: int = 32
    dim: int = 32
    heads: int = 2
    depth: int = 2
    micro: int = 2


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.n1, self.n2 = nn.RMSNorm(a.dim), nn.RMSNorm(a.dim)
        self.qkv = nn.Linear(a.dim, 3 * a.dim, bias=False)
        self.proj = nn.Linear(a.dim, a.dim, bias=False)
        self.gate_up = nn.Linear(a.dim, 6 * a.dim, bias=False)
        self.down = nn.Linear(3 * a.dim, a.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(att.transpose(1, 2).reshape(b, t, d))
        gate, up = self.gate_up(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class CodeModel(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok, self.pos = nn.Embedding(a.vocab, a.dim), nn.Embedding(a.ctx, a.dim)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.depth))
        self.norm, self.head = nn.RMSNorm(a.dim), nn.Linear(a.dim, a.vocab, bias=False)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos.weight
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    a = Args() if device == "cuda" else TinyArgs()
    torch.manual_seed(10)
    torch.set_float32_matmul_precision("high")
    stream = torch.randint(0, 4, (5_000_000 if device == "cuda" else 5000,), device=device).cumsum(0) % a.vocab
    window = torch.arange(a.ctx + 1, device=device)
    model = CodeModel(a).to(device)
    for block in model.blocks:
        block.compile(backend="inductor" if device == "cuda" else "aot_eager")
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def update():
        total = 0.0
        for _ in range(a.accumulate):
            at = torch.randint(0, len(stream) - a.ctx - 1, (a.micro, 1), device=device)
            seq = stream[at + window]
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(seq[:, :-1], seq[:, 1:]) / a.accumulate
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        return total

    update()
    update()
    t0, n = time.monotonic(), 0
    while time.monotonic() - t0 < a.seconds:
        loss = update()
        n += 1
        if n % 20 == 0:
            print(f"update {n}  loss {loss.item():.4f}")
    rate = n * a.accumulate * a.micro * a.ctx / (time.monotonic() - t0)
    print(f"{n} updates, {rate:,.0f} tokens/s")


if __name__ == "__main__":
    main()
