"""A compiled model that sees a new length in every batch."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    size = 128 + step % 60
    x, y = torch.randn(size, 64), torch.randint(0, 10, (size,))
    loss = nn.functional.cross_entropy(compiled(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
