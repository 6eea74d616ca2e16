import os
import time

import torch
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CHANNELS, CELLS, WIDTH = (400, 8192, 4096) if CUDA else (40, 256, 64)


def acquire(batches=12):
    """One dict per run of the machine: a column of readings for each channel."""
    g = torch.Generator().manual_seed(1)
    runs = []
    for _ in range(batches):
        columns = {f"ch{c:03d}": torch.randn(CELLS, generator=g) for c in range(CHANNELS)}
        runs.append((columns, torch.randint(0, 30, (CELLS,), generator=g)))
    return runs


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(CHANNELS, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(),
            nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 30),
        )

    def forward(self, x):
        return self.layers(x)


def to_device(columns, cells):
    columns = {name: column.to(DEVICE) for name, column in columns.items()}
    return torch.stack(list(columns.values()), 1), cells.to(DEVICE)


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    runs = acquire()
    model = Gate().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=CUDA)
    done, start = 0, None
    while start is None or time.time() - start < limit:
        x, y = to_device(*runs[done % len(runs)])
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == 20:
            start = time.time()
    print(f"loss {loss.item():.3f}; {(done - 20) / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
