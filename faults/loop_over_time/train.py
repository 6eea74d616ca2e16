"""A recurrent cell written as a Python loop over sixty days."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

x, y = torch.randn(16384, 60, 20, device="cuda"), torch.randn(16384, 1, device="cuda")
cell, head = nn.GRUCell(20, 256).cuda(), nn.Linear(256, 1).cuda()
optimizer = torch.optim.AdamW([*cell.parameters(), *head.parameters()], lr=1e-3, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    for _ in range(20):
        at = torch.randint(0, 16384, (512,), device="cuda")
        batch = x[at]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            state = torch.zeros(512, 256, device="cuda")
            for day in range(60):
                state = cell(batch[:, day], state)
            loss = nn.functional.mse_loss(head(state), y[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("done", loss.item())
