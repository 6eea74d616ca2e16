"""The optimizer walks over many small parameters one by one."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

x, y = torch.randn(65536, 256, device="cuda"), torch.randn(65536, 1, device="cuda")
layers = [layer for _ in range(60) for layer in (nn.Linear(256, 256), nn.ReLU())]
model = nn.Sequential(*layers, nn.Linear(256, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    for _ in range(20):
        at = torch.randint(0, 65536, (8192,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x[at]), y[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("done", loss.item())
