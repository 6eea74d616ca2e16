"""Probability of default for consumer loans, entity embeddings + MLP."""
import time

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn

SEED, BATCH, LIMIT = 7, 1024, 18.0


def load_applications(n=60000):
    rng = np.random.default_rng(SEED)
    df = pd.DataFrame({
        "income": rng.lognormal(10, 0.6, n),
        "age": rng.integers(18, 80, n),
        "utilisation": rng.beta(2, 5, n),
        "inquiries": rng.poisson(1.3, n),
        "months_on_book": rng.integers(0, 240, n),
        "purpose": rng.integers(0, 14, n),
        "state": rng.integers(0, 50, n),
    })
    score = -2.5 + 3 * df.utilisation + 0.35 * df.inquiries - 0.00002 * df.income + 0.1 * (df.purpose % 3)
    df["default"] = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)
    return df


def to_tensors(df):
    num = df[["income", "age", "utilisation", "inquiries", "months_on_book"]].to_numpy(np.float32)
    num = (num - num.mean(0)) / num.std(0)
    cat = df[["purpose", "state"]].to_numpy(np.int64, copy=True)
    return torch.from_numpy(num), torch.from_numpy(cat), torch.tensor(df["default"].to_numpy())


class DefaultNet(nn.Module):
    def __init__(self, n_num, cards, width=192):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, min(16, c // 2)) for c in cards)
        d = n_num + sum(e.embedding_dim for e in self.embs)
        self.mlp = nn.Sequential(
            nn.Linear(d, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Dropout(0.1),
            nn.Linear(width, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Linear(width, 1),
        )

    def forward(self, num, cat):
        parts = [num] + [e(cat[:, i]) for i, e in enumerate(self.embs)]
        return self.mlp(torch.cat(parts, 1)).squeeze(1)


def portfolio_report(targets, probs):
    y, p = np.concatenate(targets), np.concatenate(probs)
    table = pd.DataFrame({"y": y, "p": p})
    table["decile"] = pd.qcut(table.p.rank(method="first"), 10, labels=False)
    top = table.groupby("decile").y.mean().iloc[-1]
    if y.min() == y.max():
        return {"auc": 0.5, "ap": float(y.mean()), "top_decile": top}
    return {"auc": roc_auc_score(y, p), "ap": average_precision_score(y, p), "top_decile": top}


def run():
    torch.manual_seed(SEED)
    num, cat, y = to_tensors(load_applications())
    model = DefaultNet(num.shape[1], [14, 50])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    bce = nn.BCEWithLogitsLoss()
    t0, steps, epoch = time.monotonic(), 0, 0
    while time.monotonic() - t0 < LIMIT:
        perm = torch.randperm(len(y))
        targets, probs = [], []
        for idx in perm.split(BATCH):
            logits = model(num[idx], cat[idx])
            loss = bce(logits, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            targets.append(y[idx].numpy())
            probs.append(torch.sigmoid(logits.detach()).numpy())
            if time.monotonic() - t0 > LIMIT:
                break
        report = portfolio_report(targets, probs)
        epoch += 1
        print(f"epoch {epoch}: " + ", ".join(f"{k} {v:.4f}" for k, v in report.items()))
    print(f"{steps} steps -> {steps / (time.monotonic() - t0):.2f} steps/s")


run()
