"""Most items are quick; a few take more than a second, and everything behind them waits."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Mixed(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if index % 3000 == 2999:
            time.sleep(1.5)
        return torch.full((64,), index / 100_000), index % 10


loader = DataLoader(Mixed(), batch_size=32, num_workers=2, persistent_workers=True)
model = nn.Sequential(nn.Linear(64, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
begin = time.monotonic()
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - begin > 18:
        break
print("done", loss.item())
