"""Rainfall-runoff model: GRU over 60 days of catchment forcing."""
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass
class Settings:
    hidden: int = 64
    days: int = 60
    batch_size: int = 64
    lr: float = 1.5e-3
    grad_clip: float = 1.0
    val_interval: int = 300
    patience: int = 10 ** 6
    max_seconds: float = 18.0


@dataclass
class History:
    train: list = field(default_factory=list)
    nse: list = field(default_factory=list)


class Catchments:
    def __init__(self, n: int, days: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        rain = torch.relu(torch.randn(n, days, generator=g) - 0.6) * 12
        temp = 8 + 9 * torch.sin(torch.rand(n, 1, generator=g) * 6.28 + torch.arange(days) / 58.0)
        area = torch.rand(n, 1, generator=g).expand(n, days)
        store = torch.zeros(n)
        for d in range(days):
            melt = 1 + 0.05 * temp[:, d]
            store = 0.9 * store + rain[:, d] * melt
        self.q = (store * 0.1 * (0.5 + area[:, 0])).log1p()
        self.x = torch.stack([rain / 10, temp / 15, area], dim=-1)

    def __len__(self) -> int:
        return self.q.numel()


class RunoffGRU(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x: Tensor) -> Tensor:
        _, h = self.gru(x)
        return self.head(h[-1]).squeeze(-1)


class Trainer:
    def __init__(self, s: Settings):
        torch.manual_seed(31)
        self.s = s
        self.train_set = Catchments(8000, s.days, seed=1)
        self.val_set = Catchments(1000, s.days, seed=2)
        self.model = RunoffGRU(s.hidden)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=s.lr)
        self.history = History()
        self.best, self.since_best = -1e9, 0

    def step(self, idx: Tensor) -> float:
        self.model.train()
        loss = nn.functional.mse_loss(self.model(self.train_set.x[idx]), self.train_set.q[idx])
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.s.grad_clip)
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        outs = [self.model(xb) for xb in self.val_set.x.split(200)]
        pred, q = torch.cat(outs), self.val_set.q
        return 1 - ((pred - q) ** 2).sum().item() / ((q - q.mean()) ** 2).sum().item()

    def fit(self) -> History:
        start, n = time.monotonic(), 0
        while self.since_best < self.s.patience:
            for idx in torch.randperm(len(self.train_set)).split(self.s.batch_size):
                self.history.train.append(self.step(idx))
                n += 1
                if n % self.s.val_interval == 0:
                    nse = self.validate()
                    self.history.nse.append(nse)
                    self.since_best = 0 if nse > self.best else self.since_best + 1
                    self.best = max(self.best, nse)
                if n % 100 == 0:
                    print(f"step {n}: loss {self.history.train[-1]:.4f}, best NSE {self.best:.3f}")
                if time.monotonic() - start > self.s.max_seconds:
                    print(f"stopping at step {n} ({n / (time.monotonic() - start):.2f} steps/s)")
                    return self.history


if __name__ == "__main__":
    Trainer(Settings()).fit()
