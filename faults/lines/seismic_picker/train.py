import argparse
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 1024
PER_SHARD = 20


def write_shards(folder: pathlib.Path, shards: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH)
    for s in range(shards):
        onset = rng.integers(200, 800, PER_SHARD)
        noise = 0.3 * rng.standard_normal((PER_SHARD, 3, LENGTH))
        rel = np.clip(t - onset[:, None], 0, None)[:, None, :]
        freq = rng.uniform(0.05, 0.2, (PER_SHARD, 3, 1))
        wave = np.where(rel > 0, np.sin(freq * rel) * np.exp(-rel / 150), 0)
        traces = (noise + wave).astype(np.float32)
        np.savez_compressed(folder / f"shard_{s:03d}.npz", traces=traces, onset=onset)


class Traces(Dataset):
    def __init__(self, folder: pathlib.Path):
        self.paths = sorted(folder.glob("shard_*.npz"))

    def __len__(self) -> int:
        return len(self.paths) * PER_SHARD

    def __getitem__(self, i: int):
        s, k = divmod(i, PER_SHARD)
        with np.load(self.paths[s]) as shard:
            x, onset = shard["traces"][k], int(shard["onset"][k])
        x = (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-6)
        target = np.exp(-((np.arange(LENGTH, dtype=np.float32) - onset) ** 2) / 200).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy(target)


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv1d(a, b, 7, stride, 3), nn.BatchNorm1d(b), nn.ReLU())


class Picker(nn.Module):
    def __init__(self, w: int):
        super().__init__()
        self.d1 = conv(3, w)
        self.d2 = conv(w, 2 * w, 2)
        self.d3 = conv(2 * w, 4 * w, 2)
        self.mid = conv(4 * w, 4 * w)
        self.u2 = nn.ConvTranspose1d(4 * w, 2 * w, 4, 2, 1)
        self.u1 = nn.ConvTranspose1d(4 * w, w, 4, 2, 1)
        self.out = nn.Conv1d(2 * w, 1, 5, padding=2)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        c = self.mid(self.d3(b))
        b = torch.cat([b, torch.relu(self.u2(c))], 1)
        a = torch.cat([a, torch.relu(self.u1(b))], 1)
        return self.out(a).squeeze(1)


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shards", type=int, default=40)
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--width", type=int, default=12)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--run-seconds", type=float, default=12)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(23)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        write_shards(folder, args.shards, seed=23)
        loader = DataLoader(Traces(folder), args.batch_size, shuffle=True, drop_last=True)
        model = Picker(args.width)
        opt = torch.optim.Adam(model.parameters(), lr=args.lr)
        criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(5.0))
        done, start = 0, time.monotonic()
        while time.monotonic() - start < args.run_seconds:
            for x, y in loader:
                loss = criterion(model(x), y)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                done += 1
                if time.monotonic() - start >= args.run_seconds:
                    break
        print(f"final loss {loss.item():.4f}")
    print(f"steps: {done}")


if __name__ == "__main__":
    main()
