"""The data set is a list of dicts, which every worker ends up copying."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Records(Dataset):
    def __init__(self):
        self.rows = [{"id": k, "values": [float(k), float(k + 1), float(k + 2)], "name": f"row-{k}"} for k in range(900_000)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return torch.tensor(row["values"]) / 900_000, len(row["name"]) % 2


loader = DataLoader(Records(), batch_size=256, shuffle=True, num_workers=4, persistent_workers=True)
model = nn.Sequential(nn.Linear(3, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begin = time.monotonic()
for step, (x, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - begin > 17:
        break
print("done", loss.item())
