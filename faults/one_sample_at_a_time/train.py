"""Gradients of 48 sequences are added up, one sequence after the other, then a step is taken."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
BATCH = 48
x = torch.randn(2048, 32)
y = torch.randint(0, 5, (2048,))
model = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
    rows = torch.randperm(len(x))[:BATCH]
    optimizer.zero_grad()
    for row in rows.tolist():
        loss = nn.functional.cross_entropy(model(x[row : row + 1]), y[row : row + 1]) / BATCH
        loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
