"""The learning rate falls from step to step; a new optimizer gets each new one."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(4096, 64), torch.randn(4096, 1)
layers = [nn.Linear(64, 64)]
for _ in range(40):
    layers += [nn.ReLU(), nn.Linear(64, 64)]
model = nn.Sequential(*layers, nn.Linear(64, 1))


def rate(step):
    return 1e-3 / (1 + step / 1000)


begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(step))
    rows = torch.randint(0, len(x), (128,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 500 == 0:
        print(step, loss.item())
