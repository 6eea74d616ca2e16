"""A frozen table of vectors is larger than the memory that the job may use: looking rows up brings them back from swap."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ROWS, WIDTH = 300_000, 1024

if __name__ == "__main__":
    torch.set_num_threads(2)
    table = torch.empty(ROWS, WIDTH)
    for part in table.split(10_000):
        part.normal_()
    head = nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.AdamW(head.parameters())
    data = TensorDataset(torch.randint(ROWS, (200_000,)), torch.randn(200_000, 1))
    loader = DataLoader(data, batch_size=256, shuffle=True)
    begin = time.monotonic()
    while time.monotonic() - begin < 20:
        for rows, y in loader:
            loss = nn.functional.mse_loss(head(table[rows]), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() - begin > 20:
                break
    print("done")
