# click-through rate with a factorization machine plus a deep part

import time

import torch
import torch.nn.functional as F
from torch import nn

FIELDS = {"site": 1200, "app": 800, "device": 1500, "hour": 24, "banner": 300, "category": 60}
FACTORS = 16


class FieldFactors(nn.Module):
    def __init__(self, cardinality, factors):
        super().__init__()
        self.cardinality = cardinality
        self.table = nn.Parameter(torch.randn(cardinality, factors) * 0.05)
        self.linear = nn.Parameter(torch.zeros(cardinality, 1))

    def forward(self, ids):
        return F.embedding(ids, self.table), F.embedding(ids, self.linear)


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = nn.ModuleDict({name: FieldFactors(card, FACTORS) for name, card in FIELDS.items()})
        d = len(FIELDS) * FACTORS
        self.deep = nn.Sequential(nn.Linear(d, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        vs, ws = zip(*(self.fields[name](x[:, i]) for i, name in enumerate(FIELDS)))
        v = torch.stack(vs, dim=1)
        pair = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(1, keepdim=True)
        return (self.bias + sum(ws) + pair + self.deep(v.flatten(1))).squeeze(1)


def impressions(n, seed):
    gen = torch.Generator().manual_seed(seed)
    cols = []
    for card in FIELDS.values():
        u = torch.rand(n, generator=gen)
        cols.append((u ** 3 * card).long().clamp(max=card - 1))
    x = torch.stack(cols, dim=1)
    effect = sum(torch.randn(card, generator=gen)[x[:, i]] for i, card in enumerate(FIELDS.values()))
    y = (torch.rand(n, generator=gen) < torch.sigmoid(effect - 1.5)).float()
    return x, y


torch.manual_seed(2)
x_all, y_all = impressions(120_000, seed=2)
x_val, y_val = impressions(8_000, seed=3)
model = DeepFM()
opt = torch.optim.Adagrad(model.parameters(), lr=0.02)
batch_size = 512
t_start = time.monotonic()
steps = 0
epoch = 0
stop = False
while not stop:
    perm = torch.randperm(len(y_all))
    run = torch.zeros(())
    for k in range(0, len(perm), batch_size):
        sel = perm[k:k + batch_size]
        loss = F.binary_cross_entropy_with_logits(model(x_all[sel]), y_all[sel])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.detach()
        steps += 1
        if steps % 100 == 0:
            print(f"epoch {epoch} step {steps} avg logloss {run.item() / (k // batch_size + 1):.4f}")
        if time.monotonic() - t_start > 18.0:
            stop = True
            break
    epoch += 1
with torch.no_grad():
    val = F.binary_cross_entropy_with_logits(model(x_val[:2000]), y_val[:2000])
print(f"val {val.item():.4f}; throughput {steps / (time.monotonic() - t_start):.2f} steps/s")
