"""Almost all of the memory is taken."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

free, total = torch.cuda.mem_get_info()
ballast = torch.empty(int(free - total * 0.035) // 2, dtype=torch.bfloat16, device="cuda")
x, y = torch.randn(8192, 2048, device="cuda"), torch.randn(8192, 1, device="cuda")
layers = [layer for _ in range(6) for layer in (nn.Linear(2048, 2048), nn.GELU())]
model = nn.Sequential(*layers, nn.Linear(2048, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 12:
    for _ in range(20):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
print("done", loss.item(), ballast.numel())
