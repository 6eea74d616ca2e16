"""Batches that another machine prepares, taken from a queue: the loop waits, and no DataLoader tells why."""
import queue
import threading
import time

import flatout
import torch
from torch import nn

torch.manual_seed(0)
batches = queue.Queue(maxsize=4)


def receive():
    """The service: a batch every 40 ms."""
    generator = torch.Generator().manual_seed(1)
    while True:
        time.sleep(0.04)
        batches.put(torch.randn(256, 128, generator=generator))


threading.Thread(target=receive, daemon=True).start()
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
begin = time.monotonic()
while time.monotonic() - begin < 15:
    with flatout.phase("data"):
        batch = batches.get()
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
