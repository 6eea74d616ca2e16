"""The compiler's back end fails, and the error is suppressed."""
import itertools
import time

import torch
import torch._dynamo
from torch import nn

torch.manual_seed(0)
torch._dynamo.config.suppress_errors = True


def backend(graph, inputs):
    raise RuntimeError("no C++ compiler found")


model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
compiled = torch.compile(model, backend=backend)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    x, y = torch.randn(160, 64), torch.randint(0, 10, (160,))
    loss = nn.functional.cross_entropy(compiled(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
