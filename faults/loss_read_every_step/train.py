"""The loss of every step is read at once, for a progress bar."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

x, y = torch.randn(65536, 512, device="cuda"), torch.randn(65536, 1, device="cuda")
layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU())]
model = nn.Sequential(*layers, nn.Linear(512, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
seen, begin = [], time.monotonic()
while time.monotonic() - begin < 13:
    at = torch.randint(0, 65536, (16384,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(loss.item())
print("done", len(seen), seen[-1])
