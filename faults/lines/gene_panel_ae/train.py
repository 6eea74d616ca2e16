import os
import time

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"
CELLS, GENES, HIDDEN, CODE, BATCH = (100_000, 4096, 8192, 256, 8192) if on_gpu else (500, 64, 128, 8, 64)
LIMIT = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
expression = torch.rand(CELLS, GENES, device=device, dtype=torch.bfloat16 if on_gpu else torch.float32)

model = nn.Sequential(
    nn.Linear(GENES, HIDDEN), nn.ReLU(inplace=True),
    nn.Linear(HIDDEN, HIDDEN), nn.ReLU(inplace=True),
    nn.Linear(HIDDEN, CODE),
    nn.Linear(CODE, HIDDEN), nn.ReLU(inplace=True),
    nn.Linear(HIDDEN, HIDDEN), nn.ReLU(inplace=True),
    nn.Linear(HIDDEN, GENES),
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=on_gpu)


def train_step(rows):
    cells = expression[rows]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(cells), cells)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def run():
    count, start = 0, None
    while True:
        total = torch.zeros((), device=device)
        order = torch.randperm(CELLS, device=device)
        for rows in order.split(BATCH)[:-1]:
            total += train_step(rows)
            count += 1
            if count == 6:
                start = time.perf_counter()
            elif start is not None and time.perf_counter() - start > LIMIT:
                return (count - 6) / (time.perf_counter() - start), total.item()


rate, total = run()
print(f"{rate:.2f} steps/s, last sum {total:.4f}")
