"""Two workers where sixteen CPUs could work."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Rows(Dataset):
    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        value = index
        for _ in range(6000):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
        return torch.full((512,), value / 0x7FFFFFFF), float(index % 2)


loader = DataLoader(Rows(), batch_size=512, num_workers=2, persistent_workers=True, pin_memory=True)
layers = [layer for _ in range(6) for layer in (nn.Linear(2048, 2048), nn.GELU())]
model = nn.Sequential(nn.Linear(512, 2048), *layers, nn.Linear(2048, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
begin = time.monotonic()
for x, y in loader:
    x, y = x.cuda(non_blocking=True), y.float().cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if time.monotonic() - begin > 15:
        break
print("done", loss.item())
