"""Two-tower retrieval on implicit feedback with in-batch negatives."""
import dataclasses

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


@dataclasses.dataclass
class Config:
    n_users: int = 220_000
    n_items: int = 60_000
    dim: int = 48
    batch: int = 512
    steps: int = 180
    lr: float = 2e-3
    seed: int = 99
    report: int = 10


class Tower(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.table = nn.Embedding(n, dim)
        nn.init.normal_(self.table.weight, std=0.05)
        self.proj = nn.Sequential(nn.Linear(dim, 128), nn.GELU(), nn.Linear(128, dim))

    def forward(self, ids):
        return F.normalize(self.proj(self.table(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = Tower(cfg.n_users, cfg.dim)
        self.item = Tower(cfg.n_items, cfg.dim)
        self.logit_scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, u, i):
        s = self.user(u) @ self.item(i).T * self.logit_scale.exp()
        return F.cross_entropy(s, torch.arange(len(u)))


class Interactions:
    def __init__(self, cfg):
        rng = np.random.default_rng(cfg.seed)
        n = 400_000
        self.u = torch.from_numpy(rng.integers(0, cfg.n_users, n))
        taste = self.u.numpy() % 50
        self.i = torch.from_numpy((taste * 1200 + rng.zipf(1.4, n) % 1200) % cfg.n_items)
        self.gen = torch.Generator().manual_seed(cfg.seed)

    def batches(self, size, count):
        for _ in range(count):
            k = torch.randint(0, len(self.u), (size,), generator=self.gen)
            yield self.u[k], self.i[k]


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.model = TwoTower(cfg)
        self.data = Interactions(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def step(self, u, i):
        loss = self.model(u, i)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        acc = 0.0
        for k, (u, i) in enumerate(self.data.batches(self.cfg.batch, self.cfg.steps), 1):
            acc += self.step(u, i)
            if k % self.cfg.report == 0:
                print(f"{k:6d}  loss {float(acc) / self.cfg.report:.4f}", flush=True)
                acc = 0.0


if __name__ == "__main__":
    Trainer(Config()).fit()
