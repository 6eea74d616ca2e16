"""The losses are added up with their graphs, until no memory is left."""
import resource
import time

import torch
from torch import nn

torch.manual_seed(0)
# As much as a small machine would have: it is full after some fifteen seconds.
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
x, y = torch.randn(8192, 256), torch.randn(8192, 1)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
total, begin, kept = 0.0, time.monotonic(), 0
while True:
    at = torch.randint(0, 8192, (512,))
    loss = nn.functional.mse_loss(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if kept * 0.03 < time.monotonic() - begin:
        # The hidden layers of the batch hang on it.
        total = total + loss
        kept += 1
