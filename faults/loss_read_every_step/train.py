"""The error of every horizon is read on its own in every step, for a dashboard."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
HORIZONS = 128

x, y = torch.randn(65536, 512, device="cuda"), torch.randn(65536, HORIZONS, device="cuda")
layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU())]
model = nn.Sequential(*layers, nn.Linear(512, HORIZONS)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
seen, begin = [], time.monotonic()
while time.monotonic() - begin < 13:
    at = torch.randint(0, 65536, (32768,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        errors = (model(x[at]) - y[at]).square().mean(0)
    loss = errors.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append([error.item() for error in errors.detach()])
print("done", len(seen), seen[-1][0])
