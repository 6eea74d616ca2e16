"""Two samples a step, but large ones: the CPU is full of arithmetic."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
images, labels = torch.randn(8, 3, 160, 160), torch.randint(0, 10, (8,))
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 8, (2,))
    loss = nn.functional.cross_entropy(model(images[at]), labels[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
