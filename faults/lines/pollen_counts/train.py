import argparse
import os
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=2048)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
args = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(40_000, 80)
rate = (x[:, :5].sum(1) * 0.3).exp().clamp(max=50)
counts = torch.poisson(rate)

model = nn.Sequential(
    nn.Linear(80, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.PoissonNLLLoss()

steps, epoch, start = 0, 0, None
finished = False
while not finished:
    order = torch.randperm(len(x))
    total, batches = torch.zeros(()), 0
    for rows in order.split(args.batch):
        loss = criterion(model(x[rows]).squeeze(1), counts[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        batches += 1
        steps += 1
        if steps == 3:
            start = time.perf_counter()
        if start and time.perf_counter() - start > args.seconds:
            finished = True
            break
    epoch += 1
    print(f"epoch {epoch}: loss {total.item() / batches:.4f}")
print(f"{(steps - 3) / (time.perf_counter() - start):.3f} steps per second")
