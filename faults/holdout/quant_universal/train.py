#!/usr/bin/env python3
"""Universal next-day model: one recurrent net for all stocks, fed from feature files in parts."""
import argparse
import csv
import gzip
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--window", type=int, default=16)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--days", type=int, default=10000)
    parser.add_argument("--hidden-size", type=int, default=24)
    parser.add_argument("--num-workers", type=int, default=40)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def write_parts(folder, parts, days, seed):
    """prices_part0.csv.gz … : close, high, low and volume of one stock each."""
    generator = torch.Generator().manual_seed(seed)
    for part in range(parts):
        close = 100 * torch.exp((torch.randn(days, generator=generator) * 0.01).cumsum(0))
        volume = torch.rand(days, generator=generator)
        table = torch.stack([close, close * 1.01, close * 0.99, volume], dim=1)
        with gzip.open(folder / f"prices_part{part}.csv.gz", "wt", compresslevel=1) as file:
            file.writelines("%.3f,%.3f,%.3f,%.3f\n" % tuple(row) for row in table.tolist())


class PriceWindows(Dataset):
    """A key is (part, first days): one whole batch of windows. A part that was read once stays in memory."""

    def __init__(self, folder, window):
        self.folder, self.window, self.read = folder, window, {}

    def features(self, part):
        if part not in self.read:
            with gzip.open(self.folder / f"prices_part{part}.csv.gz", "rt") as file:
                table = torch.tensor([[float(field) for field in row] for row in csv.reader(file)])
            log_price = table[:, :3].log()
            returns = torch.cat([torch.zeros(1, 3), log_price.diff(dim=0)]) * 100
            self.read[part] = torch.cat([returns, table[:, 3:] - 0.5], dim=1)
        return self.read[part]

    def __getitem__(self, key):
        part, days = key
        features = self.features(part)
        rows = days[:, None] + torch.arange(self.window)[None]
        return features[rows], features[days + self.window, 0]


class PartBatches(Sampler):
    """Every part once an epoch in random order, with random windows of it."""

    def __init__(self, args):
        self.args = args

    def __len__(self):
        return self.args.parts

    def __iter__(self):
        last = self.args.days - self.args.window
        for part in torch.randperm(self.args.parts).tolist():
            yield part, torch.randint(last, (self.args.batch_size,))


class UniversalModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.recurrent = nn.GRU(4, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, features):
        hidden, _ = self.recurrent(features)
        return self.head(hidden[:, -1]).squeeze(1)


def train(args, folder):
    loader = DataLoader(
        PriceWindows(folder, args.window),
        sampler=PartBatches(args),
        batch_size=None,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model = UniversalModel(args.hidden_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    for epoch in range(args.epochs):
        began = time.perf_counter()
        losses = []
        for features, target in loader:
            loss = nn.functional.huber_loss(model(features), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean().item()
        print(f"epoch {epoch + 1}/{args.epochs} loss {mean:.4f} {time.perf_counter() - began:.2f}s", flush=True)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        write_parts(Path(folder), args.parts, args.days, args.seed)
        train(args, Path(folder))


if __name__ == "__main__":
    main()
