"""A log is uploaded every few seconds, in the loop."""
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8192, 256), torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
last = begin = time.monotonic()
while time.monotonic() - begin < 24:
    at = torch.randint(0, 8192, (256,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - last > 4:
        time.sleep(0.9)
        last = time.monotonic()
print("done", loss.item())
