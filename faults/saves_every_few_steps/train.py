"""A checkpoint with optimizer state every five steps."""
import itertools
import os
import tempfile
import time

import torch
from torch import nn

torch.manual_seed(0)
folder = tempfile.TemporaryDirectory()
model = nn.Sequential(nn.Linear(128, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(4096, 128), torch.randint(0, 10, (4096,))
begin = time.monotonic()
for step in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    at = torch.randint(0, 4096, (64,))
    loss = nn.functional.cross_entropy(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        path = os.path.join(folder.name, "last.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
print("done", os.path.getsize(path))
