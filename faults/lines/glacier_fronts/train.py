import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def write_scenes(folder, scenes=12, per_scene=64):
    rng = np.random.default_rng(0)
    for s in range(scenes):
        arrays = {}
        for i in range(per_scene):
            tile = rng.integers(0, 40, (4, 48, 48)).astype(np.int16)
            edge = int(rng.integers(8, 40))
            tile[:, :, edge:] += 60
            arrays[f"tile_{i}"] = tile
            arrays[f"front_{i}"] = np.float32(edge / 48)
        np.savez_compressed(folder / f"scene_{s:02d}.npz", **arrays)


class Fronts(Dataset):
    def __init__(self, folder, per_scene=64):
        self.scenes = sorted(Path(folder).glob("*.npz"))
        self.per_scene = per_scene

    def __len__(self):
        return len(self.scenes) * self.per_scene

    def load(self, index):
        scene, i = divmod(index, self.per_scene)
        with np.load(self.scenes[scene]) as archive:
            return archive[f"tile_{i}"], archive[f"front_{i}"]

    def __getitem__(self, index):
        tile, front = self.load(index)
        return torch.from_numpy(tile.astype(np.float32)) / 100, torch.tensor(float(front))


class FrontNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 24, 3, padding=1, stride=2), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1, stride=2), nn.ReLU(),
            nn.Conv2d(48, 48, 3, padding=1), nn.ReLU(),
        )
        self.out = nn.Linear(48 * 12 * 12, 1)

    def forward(self, x):
        return self.out(self.body(x).flatten(1)).squeeze(1)


def main():
    torch.manual_seed(0)
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    with tempfile.TemporaryDirectory() as folder:
        write_scenes(Path(folder))
        loader = DataLoader(Fronts(folder), batch_size=64, shuffle=True)
        model = FrontNet()
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        steps = 0
        start = None
        while start is None or time.time() - start < limit:
            for tiles, fronts in loader:
                loss = nn.functional.smooth_l1_loss(model(tiles), fronts)
                opt.zero_grad()
                loss.backward()
                opt.step()
                steps += 1
                if start is None and steps == 4:
                    start, steps = time.time(), 0
                if start is not None and time.time() - start >= limit:
                    break
        print(f"{steps / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
