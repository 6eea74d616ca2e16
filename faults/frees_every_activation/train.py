"""A wide layer over a large batch on the CPU: its activations are freed each step, handed back to the kernel, and taken again page by page."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(65536, 16), torch.randn(65536, 1)
model = nn.Sequential(nn.Linear(16, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
    at = torch.randint(0, 65536, (10240,))
    loss = nn.functional.mse_loss(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item(), step)
