"""Sixty narrow residual layers on a GPU: each does little, and each costs its launches."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(16, 64), *[Layer(64) for _ in range(60)], nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    data = TensorDataset(torch.randn(131_072, 16), torch.randn(131_072, 1))
    loader = DataLoader(
        data, batch_size=512, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True, prefetch_factor=4
    )
    begin = time.monotonic()
    while time.monotonic() - begin < 20:
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("done")
