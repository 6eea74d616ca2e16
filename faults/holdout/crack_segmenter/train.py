#!/usr/bin/env python3
"""Crack segmentation on full-resolution tiles. Two tiles are a batch: that is what fits the model's activations."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    """Concrete tiles with a crack each, held as bytes."""

    def __init__(self, count, side, seed):
        g = torch.Generator().manual_seed(seed)
        self.tiles = torch.randint(100, 160, (count, 1, side, side), generator=g, dtype=torch.uint8)
        self.masks = torch.zeros(count, 1, side, side, dtype=torch.uint8)
        for i in range(count):
            column = side // 2
            for row, step in enumerate(torch.randint(-1, 2, (side,), generator=g).tolist()):
                column = min(side - 3, max(0, column + step))
                self.masks[i, 0, row, column : column + 3] = 1
        self.tiles[self.masks.bool()] = 40

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        tile, mask = self.tiles[i], self.masks[i]
        if torch.rand(()) < 0.5:
            tile, mask = tile.flip(-1), mask.flip(-1)
        return tile, mask


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(inplace=True),
    )


class SmallUnet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down1, self.down2, self.middle = double(1, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.up2, self.up1 = double(6 * width, 2 * width), double(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        x = self.middle(F.max_pool2d(second, 2))
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2), second], dim=1))
        x = self.up1(torch.cat([F.interpolate(x, scale_factor=2), first], dim=1))
        return self.out(x)


def main(args):
    torch.manual_seed(args.seed)
    loader = DataLoader(
        Tiles(args.tiles, args.side, args.seed),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
    )
    model = SmallUnet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    began = time.perf_counter()
    for epoch in range(args.epochs):
        for step, (tiles, masks) in enumerate(loader):
            tiles = (tiles.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
            loss = F.binary_cross_entropy_with_logits(model(tiles), masks.float(), pos_weight=torch.tensor(20.0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} after {time.perf_counter() - began:.1f}s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=32)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    main(parser.parse_args())
