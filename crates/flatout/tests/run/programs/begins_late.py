"""Makes its loader, copies its model to a device, and begins two seconds later. The copy is told to the probe as a GPU's would be."""

import time

import torch
from torch.utils.data import DataLoader, Dataset

from _flatout_probe import clock


class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(8)


loader = DataLoader(Slow(), batch_size=8)
now = time.perf_counter_ns()
clock.span(clock.TRANSFER, now - 1000, now)
time.sleep(2)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
