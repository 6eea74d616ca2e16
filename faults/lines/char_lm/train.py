"""Small character-level GPT, trained on generated pseudo-English."""
import argparse
import math
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def pseudo_text(n_words, seed):
    r = random.Random(seed)
    cons, vow = "bcdfghklmnprstvw", "aeiou"
    lex = ["".join(r.choice(cons) + r.choice(vow) for _ in range(r.randint(1, 4))) for _ in range(400)]
    weights = [1 / (k + 1) for k in range(400)]
    return " ".join(r.choices(lex, weights, k=n_words))


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, d=128, n_layer=3, heads=4, ctx=96):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(ctx, d))
        self.layers = nn.Sequential(*[Layer(d, heads) for _ in range(n_layer)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos[: idx.size(1)]
        logits = self.head(self.ln(self.layers(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(data, ctx, batch, gen):
    start = torch.randint(0, len(data) - ctx - 1, (batch, 1), generator=gen)
    w = data[start + torch.arange(ctx + 1)]
    return w[:, :-1], w[:, 1:]


@torch.no_grad()
def val_loss(model, data, ctx, batch, n):
    model.eval()
    gen = torch.Generator().manual_seed(0)
    out = torch.stack([model(*get_batch(data, ctx, batch, gen)) for _ in range(n)]).mean().item()
    model.train()
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=140)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--ctx", type=int, default=96)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--seed", type=int, default=1337)
    a = p.parse_args()
    torch.manual_seed(a.seed)

    text = pseudo_text(60000, a.seed)
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in text])
    cut = int(0.9 * len(data))
    train, val = data[:cut], data[cut:]

    model = GPT(len(chars), ctx=a.ctx)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min(1.0, (s + 1) / a.warmup) * (0.55 + 0.45 * math.cos(math.pi * s / a.steps)))
    gen = torch.Generator().manual_seed(a.seed)
    t0 = time.time()
    for step in range(1, a.steps + 1):
        loss = model(*get_batch(train, a.ctx, a.batch, gen))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    print(f"final val loss {val_loss(model, val, a.ctx, a.batch, 5):.4f}")


if __name__ == "__main__":
    main()
