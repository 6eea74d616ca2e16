"""The model was never moved to the GPU."""
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    at = torch.randint(0, 8192, (512,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item(), torch.cuda.is_available())
