"""Character language model on text from a small random grammar."""
import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


def make_text(n_sentences, seed):
    rng = random.Random(seed)
    nouns = ["cat", "river", "engine", "child", "storm", "teacher", "garden", "train"]
    verbs = ["sees", "follows", "builds", "forgets", "carries", "finds"]
    adjectives = ["old", "quiet", "bright", "heavy", "green", "tiny"]
    phrase = lambda: f"the {rng.choice(adjectives)} {rng.choice(nouns)}"
    return " ".join(f"{phrase()} {rng.choice(verbs)} {phrase()}." for _ in range(n_sentences))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class CharLM(nn.Module):
    def __init__(self, vocab, context, dim=128, heads=4, layers=3):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(0.02 * torch.randn(context, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.position[: ids.shape[1]])))


def get_batch(data, batch_size, context):
    start = torch.randint(0, len(data) - context - 1, (batch_size, 1))
    window = data[start + torch.arange(context + 1)]
    return window[:, :-1], window[:, 1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=110)
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--context", type=int, default=96)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    text = make_text(4000, args.seed)
    chars = sorted(set(text))
    lookup = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([lookup[c] for c in text])
    train, valid = data[: int(0.95 * len(data))], data[int(0.95 * len(data)):]
    model = CharLM(len(chars), args.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    warmup = lambda s: min(1.0, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * s / args.steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)
    for step in range(1, args.steps + 1):
        inputs, targets = get_batch(train, args.batch_size, args.context)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    with torch.inference_mode():
        inputs, targets = get_batch(valid, 32, args.context)
        print(f"valid loss {F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item():.4f}")


if __name__ == "__main__":
    main()
