import math
import os
import random
import tempfile
import time
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 0
    block: int = 96
    layers: int = 3
    heads: int = 4
    dim: int = 128
    dropout: float = 0.1


NOUNS = "moon river lantern crow window ash harbor willow salt bell winter thread".split()
VERBS = "waits turns sings drifts burns answers sleeps bends".split()
ADJ = "pale slow hollow golden small patient".split()


def poem(rng):
    lines = []
    for _ in range(4):
        lines.append(f"the {rng.choice(ADJ)} {rng.choice(NOUNS)} {rng.choice(VERBS)} by the {rng.choice(NOUNS)}")
    return "\n".join(lines) + "\n\n"


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.qkv = nn.Linear(c.dim, 3 * c.dim, bias=False)
        self.out = nn.Linear(c.dim, c.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (u.view(b, t, self.c.heads, -1).transpose(1, 2) for u in self.qkv(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.att = Attention(c)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x):
        x = x + self.drop(self.att(self.n1(x)))
        return x + self.drop(self.mlp(self.n2(x)))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.tok, self.pos = nn.Embedding(c.vocab, c.dim), nn.Embedding(c.block, c.dim)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self.init)

    @staticmethod
    def init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def lr_at(step, peak=1e-3, warm=20, total=400):
    if step < warm:
        return peak * (step + 1) / warm
    return 0.1 * peak + 0.45 * peak * (1 + math.cos(math.pi * min(1.0, (step - warm) / total)))


def groups(model):
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]


def main():
    torch.manual_seed(181)
    rng = random.Random(181)
    text = "".join(poem(rng) for _ in range(1500))
    codes = {ch: i for i, ch in enumerate(sorted(set(text)))}
    data = torch.tensor([codes[ch] for ch in text])
    config = GPTConfig(vocab=len(codes))
    model = GPT(config)
    opt = torch.optim.AdamW(groups(model), lr=1e-3, betas=(0.9, 0.95))
    reach = torch.arange(config.block + 1)
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        while time.monotonic() - start < 12:
            step = len(losses)
            for group in opt.param_groups:
                group["lr"] = lr_at(step)
            at = torch.randint(0, len(data) - config.block - 1, (12, 1))
            window = data[at + reach]
            loss = model(window[:, :-1], window[:, 1:])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            losses.append(loss.item())
            if len(losses) % 150 == 0:
                torch.save({"model": model.state_dict(), "config": asdict(config)}, os.path.join(folder, "last.pt"))
                print(f"step {step}: loss {sum(losses[-50:]) / 50:.4f}  norm {norm.item():.2f}", flush=True)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    print(f"steps: {len(losses)}")


if __name__ == "__main__":
    main()
