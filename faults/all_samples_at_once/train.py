"""Gradients of four large parts of a batch are added up, then a step is taken."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
PARTS, ROWS = 4, 1024
x = torch.randn(8192, 256)
y = torch.randint(0, 5, (8192,))
model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
    order = torch.randperm(len(x))
    optimizer.zero_grad()
    for part in range(PARTS):
        rows = order[part * ROWS : (part + 1) * ROWS]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / PARTS
        loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
