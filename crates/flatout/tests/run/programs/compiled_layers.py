"""A model that is a plain `Sequential`, compiled by whoever asks for it; the compiler's back end is one that needs no C++ compiler."""

import sys

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader, TensorDataset

own = torch.compile
torch.compile = lambda *args, **kwargs: own(*args, **{**kwargs, "backend": "eager", "mode": None})



class Model(nn.Sequential):
    pass


loader = DataLoader(TensorDataset(torch.randn(400, 8)), batch_size=8)
model = (Model if "--own" in sys.argv else nn.Sequential)(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
print("graphs", counters["stats"].get("unique_graphs", 0))
