"""A stream of samples out of files, with two workers."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, shards=8, rows=4096, width=128):
        generator = torch.Generator().manual_seed(0)
        self.shards = [torch.randn(rows, width, generator=generator) for _ in range(shards)]

    def __iter__(self):
        for shard in self.shards:
            for row in shard:
                yield row, row.sum().view(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Stream(), batch_size=256, num_workers=2)
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = time.monotonic()
    for epoch in itertools.takewhile(lambda _: time.monotonic() - begin < 14, itertools.count()):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() - begin > 14:
                break
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
