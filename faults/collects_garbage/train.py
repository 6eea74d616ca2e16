"""gc.collect() in every step, with a million objects alive."""
import gc
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
archive = [{"id": k, "tags": [k, k + 1]} for k in range(400_000)]
x, y = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 8192, (256,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
print("done", loss.item(), len(archive))
