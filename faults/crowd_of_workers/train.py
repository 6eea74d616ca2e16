"""Eight workers for every CPU that this process may use."""
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
WORKERS = min(8 * len(os.sched_getaffinity(0)), 64)


class Rows(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        value = index
        for _ in range(9000):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
        return torch.full((64,), value / 0x7FFFFFFF), float(index % 2)


loader = DataLoader(Rows(), batch_size=32, num_workers=WORKERS, persistent_workers=True)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step, (x, y) in enumerate(loader):
    loss = nn.functional.mse_loss(model(x).squeeze(1), y.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - begin > 12:
        break
print("done")
