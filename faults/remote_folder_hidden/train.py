"""The same remote store, but enough workers wait for it that the steps do not."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Remote(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((64,), index / 4096), index % 10


loader = DataLoader(Remote(), batch_size=32, num_workers=4, persistent_workers=True)
model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for epoch in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("done", loss.item())
