"""Click-through model over JSON-lines event logs, streamed by an IterableDataset."""
import glob
import json
import os
import tempfile
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

BUCKETS = 20_000
FIELDS = 16


def write_logs(folder, files=4, lines=5000, seed=31):
    rng = np.random.default_rng(seed)
    for k in range(files):
        values = rng.integers(0, 5000, (lines, FIELDS))
        with open(os.path.join(folder, f"events-{k}.jsonl"), "w") as f:
            for row in values.tolist():
                event = {f"field_{j}": f"v{v}" for j, v in enumerate(row)}
                f.write(json.dumps({"event": event, "clicked": row[0] % 2}) + "\n")


def featurize(record):
    ids = [zlib.crc32(f"{k}={v}".encode()) % BUCKETS for k, v in record["event"].items()]
    return torch.tensor(ids), torch.tensor(float(record["clicked"]))


class EventStream(IterableDataset):
    """Endless stream over the events of one cross-validation fold."""

    def __init__(self, folder, fold=0, folds=20):
        self.files = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
        self.fold, self.folds = fold, folds

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        while True:
            number = 0
            for path in self.files:
                with open(path) as f:
                    for line in f:
                        number += 1
                        sample = featurize(json.loads(line))
                        if number % self.folds != self.fold:
                            continue
                        if number // self.folds % workers != worker:
                            continue
                        yield sample


class DeepCTR(nn.Module):
    def __init__(self, dim=24, hidden=512):
        super().__init__()
        self.emb = nn.Embedding(BUCKETS, dim, sparse=False)
        self.mlp = nn.Sequential(nn.Linear(FIELDS * dim, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids):
        return self.mlp(self.emb(ids).flatten(1)).squeeze(1)


def train(folder, batch_size=128, workers=2, seconds=14.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(EventStream(folder), batch_size=batch_size, num_workers=workers)
    model = DeepCTR().to(device)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    bce = nn.BCEWithLogitsLoss()
    t0 = time.perf_counter()
    for step, (ids, clicked) in enumerate(loader, 1):
        ids, clicked = ids.to(device), clicked.to(device)
        loss = bce(model(ids), clicked)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} logloss {loss.item():.4f}")
        if time.perf_counter() - t0 > seconds:
            break
    dt = time.perf_counter() - t0
    print(f"{step / dt:.2f} steps/s, {step * batch_size / dt:.0f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(31)
    with tempfile.TemporaryDirectory() as tmp:
        write_logs(tmp)
        train(tmp)
