"""nn.DataParallel around a model that has one device only: it hands the batch through."""
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8192, 256), torch.randint(0, 10, (8192,))
model = nn.DataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    at = torch.randint(0, 8192, (512,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
