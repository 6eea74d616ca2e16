"""A compiled model whose layers look at values while they compute."""
import itertools
import time

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1024, 1024)
        self.largest = 0.0

    def forward(self, x):
        x = torch.relu(self.linear(x))
        self.largest = max(self.largest, float(x.max()))
        if self.largest < 0:
            print("negative", self.largest)
        return x


model = nn.Sequential(nn.Linear(64, 1024), *[Block() for _ in range(6)], nn.Linear(1024, 10))
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    x, y = torch.randn(128, 64), torch.randint(0, 10, (128,))
    loss = nn.functional.cross_entropy(compiled(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
