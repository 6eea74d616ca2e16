"""Sixteen samples a step on a GPU that could take thousands."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

data = TensorDataset(torch.randn(65536, 128, device="cuda"), torch.randn(65536, 1, device="cuda"))
order = BatchSampler(RandomSampler(data), batch_size=16, drop_last=True)
loader = DataLoader(data, sampler=order, batch_size=None)
layers = [layer for _ in range(6) for layer in (nn.Linear(512, 512), nn.GELU())]
model = nn.Sequential(nn.Linear(128, 512), *layers, nn.Linear(512, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("done", loss.item())
