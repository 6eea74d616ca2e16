"""Credit default scoring with pandas preprocessing and a residual MLP."""
import argparse

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F

CAT = ["region", "product", "channel"]


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 20)), columns=[f"num_{i}" for i in range(20)])
    df["income"] = rng.lognormal(10, 0.6, n)
    df["region"] = rng.choice([f"r{i}" for i in range(40)], n)
    df["product"] = rng.choice(["loan", "card", "mortgage", "auto"], n)
    df["channel"] = rng.choice(["web", "branch", "phone"], n)
    score = df["num_0"] - 0.7 * df["num_1"] * df["num_2"] + (df["product"] == "card") * 0.8 - 0.5 * (df["income"] > 30000)
    df["default"] = (rng.random(n) < 1 / (1 + np.exp(-score + 1.5))).astype(np.int64)
    return df


def prepare(df):
    df = df.copy()
    df["income"] = np.log1p(df["income"])
    num_cols = [c for c in df.columns if c.startswith("num_")] + ["income"]
    num = df[num_cols].to_numpy(np.float32)
    num = (num - num.mean(0)) / num.std(0)
    codes = np.stack([df[c].astype("category").cat.codes.to_numpy() for c in CAT], 1).astype(np.int64)
    cards = [int(codes[:, i].max()) + 1 for i in range(len(CAT))]
    y = df["default"].to_numpy(np.float32)
    return torch.from_numpy(num), torch.from_numpy(codes), torch.from_numpy(y), cards


class ResBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a, self.b = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Scorer(nn.Module):
    def __init__(self, n_num, cards, d=192, depth=3):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(c, 8) for c in cards)
        self.inp = nn.Linear(n_num + 8 * len(cards), d)
        self.body = nn.Sequential(*[ResBlock(d) for _ in range(depth)])
        self.out = nn.Linear(d, 1)

    def forward(self, num, cat):
        x = torch.cat([num] + [e(cat[:, i]) for i, e in enumerate(self.emb)], 1)
        return self.out(self.body(self.inp(x))).squeeze(1)


def auc(score, y):
    order = score.argsort()
    rank = torch.empty_like(score)
    rank[order] = torch.arange(1, len(score) + 1, dtype=score.dtype)
    pos = y.sum()
    return ((rank[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=60000)
    ap.add_argument("--epochs", type=int, default=9)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(3)

    num, cat, y, cards = prepare(make_table(args.rows, 3))
    k = int(0.85 * len(y))
    model = Scorer(num.size(1), cards)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    for epoch in range(args.epochs):
        model.train()
        for step, idx in enumerate(torch.randperm(k).split(args.batch)):
            loss = F.binary_cross_entropy_with_logits(model(num[idx], cat[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        model.eval()
        with torch.inference_mode():
            s = torch.cat([model(a, b) for a, b in zip(num[k:].split(4096), cat[k:].split(4096))]).double()
        print(f"epoch {epoch} val AUC {auc(s, y[k:]):.4f}", flush=True)


if __name__ == "__main__":
    main()
