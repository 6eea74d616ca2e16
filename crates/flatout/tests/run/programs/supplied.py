"""Asks the probe what workers supply: pictures that take half a millisecond each."""

import json
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((8,), float(index))


loader = DataLoader(Slow(), batch_size=10)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()

from flatout._probe import guard, supply
from flatout._probe.patches import loader as patched

# As a trial leaves it.
patched.take_part(2)
result = {"sizes": [{"samples": 10, "wait_s": 0.005}, {"samples": 40}, {"samples": 2, "wait_s": 0.001}]}
supply.Supply(torch, [2, 1, 0], result)
dear = {"sizes": [{"samples": 10, "wait_s": 5.0}]}
supply.Supply(torch, [2], dear)
print(json.dumps({"supply": result["supply"], "dear": dear["supply"], "off": guard.off}))
