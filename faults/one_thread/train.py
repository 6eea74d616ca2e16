"""One thread computes while the other CPUs are idle."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(8192, 256), torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 8192, (256,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
