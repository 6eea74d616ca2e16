"""Twenty seconds of parsing before the first step, every time."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)


def parse(seconds=18.0):
    rows, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        line = ",".join(str((rows * 31 + k) % 997) for k in range(64))
        values = [float(field) for field in line.split(",")]
        rows += len(values) > 0
    return rows


rows = parse()
x, y = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 8192, (256,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", rows, loss.item())
