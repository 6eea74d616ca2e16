"""The same evaluation every 250 steps: a few percent."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
held_x, held_y = torch.randn(1024, 128), torch.randint(0, 10, (1024,))
model = nn.Sequential(nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def evaluate():
    model.eval()
    with torch.no_grad():
        accuracy = (model(held_x).argmax(1) == held_y).float().mean().item()
    model.train()
    return accuracy


begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 8192, (256,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(step, loss.item(), evaluate())
