"""A large model with short steps, whose gradients are filled with zeros each time."""
import time

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(4096, 3072), torch.randn(4096, 3072)
model = nn.Sequential(*[nn.Linear(3072, 3072, bias=False) for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
begin = time.monotonic()
while time.monotonic() - begin < 14:
    at = torch.randint(0, 4096, (16,))
    loss = nn.functional.mse_loss(model(x[at]), y[at])
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
print("done", loss.item())
