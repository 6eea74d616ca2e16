"""Batches of four through a small network."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(2000, 32), torch.randn(2000, 1))
loader = DataLoader(data, batch_size=4, shuffle=True)
layers = [layer for _ in range(10) for layer in (nn.Linear(32, 32), nn.Tanh())]
model = nn.Sequential(*layers, nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for epoch in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("done", loss.item())
