"""Land cover classification of satellite tiles with a read-through tile cache."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILES, BANDS, SIZE = 20_000, 4, 16


def write_tiles(folder, seed=12):
    rng = np.random.default_rng(seed)
    blob = rng.integers(0, 4000, (TILES, BANDS, SIZE, SIZE), dtype=np.uint16)
    path = os.path.join(folder, "tiles.bin")
    blob.tofile(path)
    names = [f"sentinel2/zone33/tile_{i:06d}_L2A" for i in range(TILES)]
    return path, names, rng.integers(0, 8, TILES)


class TileCache:
    def __init__(self, read):
        self.read = read
        self.entries = []

    def get(self, name, position):
        for known, tile in self.entries:
            if known == name:
                return tile
        tile = self.read(position)
        self.entries.append((name, tile))
        return tile


class Tiles(Dataset):
    def __init__(self, path, names, labels):
        self.names, self.labels = names, labels
        self.file = open(path, "rb")
        self.cache = TileCache(self.read_tile)

    def read_tile(self, position):
        count = BANDS * SIZE * SIZE
        self.file.seek(position * count * 2)
        raw = np.frombuffer(self.file.read(count * 2), dtype=np.uint16)
        return raw.reshape(BANDS, SIZE, SIZE).astype(np.float32) / 4000

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        tile = self.cache.get(self.names[i], i)
        return torch.from_numpy(tile), self.labels[i]


class Mixer(nn.Module):
    """Per-pixel tokens with spatial and channel mixing."""

    def __init__(self, dim=64, depth=2, classes=8):
        super().__init__()
        tokens = SIZE * SIZE // 4
        self.embed = nn.Conv2d(BANDS, dim, 2, stride=2)
        self.spatial = nn.ModuleList(nn.Sequential(nn.Linear(tokens, 128), nn.GELU(), nn.Linear(128, tokens))
                                     for _ in range(depth))
        self.channel = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 128), nn.GELU(),
                                                   nn.Linear(128, dim)) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2)
        for s, c in zip(self.spatial, self.channel):
            x = x + s(x)
            x = x + c(x.transpose(1, 2)).transpose(1, 2)
        return self.head(x.mean(2))


def main(batch_size=64, seconds=14.0):
    torch.manual_seed(12)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as tmp:
        loader = DataLoader(Tiles(*write_tiles(tmp)), batch_size, shuffle=True, drop_last=True)
        model = Mixer().to(device)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        step, t0, last = 0, time.perf_counter(), time.perf_counter()
        while time.perf_counter() - t0 < seconds:
            for tile, label in loader:
                loss = nn.functional.cross_entropy(model(tile.to(device)), label.to(device))
                opt.zero_grad()
                loss.backward()
                opt.step()
                step += 1
                now = time.perf_counter()
                if step % 50 == 0:
                    print(f"step {step} loss {loss.item():.3f} ({50 / (now - last):.1f} it/s)")
                    last = now
                if now - t0 >= seconds:
                    break
        took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
