"""A full validation pass after every few batches, on the GPU."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

x, y = torch.randn(65536, 1024, device="cuda"), torch.randn(65536, 1, device="cuda")
layers = [layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.GELU())]
model = nn.Sequential(*layers, nn.Linear(1024, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    model.train()
    for _ in range(10):
        at = torch.randint(0, 65536, (32768,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x[at]), y[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        score = sum(nn.functional.mse_loss(model(x), y) for _ in range(10)).item()
print("done", score)
