"""Eight samples a step, but each of them fills the device."""
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True, norm_first=True)
model = nn.TransformerEncoder(layer, 4).cuda()
x = torch.randn(8, 2048, 1024, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 13:
    for _ in range(10):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
print("done", loss.item())
