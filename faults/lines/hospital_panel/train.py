"""Predict readmission from vital sign series (memory-mapped) and a pandas table of stays."""
import os
import tempfile
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STAYS, STEPS, VITALS = 2500, 96, 12


def build_cohort(folder, seed=80):
    rng = np.random.default_rng(seed)
    path = os.path.join(folder, "vitals.npy")
    np.save(path, rng.standard_normal((STAYS, STEPS, VITALS), dtype=np.float32))
    stays = pd.DataFrame({"stay": np.arange(STAYS), "patient": rng.integers(0, 900, STAYS),
                          "ward": rng.choice(list("ABCDE"), STAYS), "age": rng.integers(18, 95, STAYS)})
    labs = pd.DataFrame({"stay": rng.integers(0, STAYS, 30_000), "value": rng.gamma(2, 2, 30_000)})
    per_stay = labs.groupby("stay")["value"].agg(["mean", "max", "count"]).reset_index()
    table = stays.merge(per_stay, on="stay", how="left").fillna(0.0)
    table["earlier"] = table.groupby("patient").cumcount()
    table["readmitted"] = (rng.random(STAYS) < 0.3).astype(np.float32)
    return path, table


class StayDataset(Dataset):
    def __init__(self, path, table):
        self.path = path
        self.vitals = None
        static = pd.get_dummies(table[["ward", "age", "mean", "max", "count", "earlier"]], columns=["ward"])
        static = static.astype(np.float32)
        self.static = torch.from_numpy(((static - static.mean()) / static.std()).to_numpy(np.float32, copy=True))
        self.label = torch.from_numpy(table["readmitted"].to_numpy(np.float32, copy=True))

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        if self.vitals is None:
            self.vitals = np.load(self.path, mmap_mode="r")
        series = torch.from_numpy(np.array(self.vitals[i]))
        keep = torch.rand(STEPS, 1) > 0.05
        return series * keep, self.static[i], self.label[i]


class ReadmissionNet(nn.Module):
    def __init__(self, dim, layers, static):
        super().__init__()
        self.inp = nn.Linear(VITALS, dim)
        self.pos = nn.Parameter(torch.zeros(STEPS, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers)
        self.out = nn.Sequential(nn.Linear(dim + static, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, series, static):
        h = self.enc(self.inp(series) + self.pos).mean(1)
        return self.out(torch.cat([h, static], dim=1)).squeeze(1)


def train(folder, seconds=14.0):
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    batch_size, dim, layers = (64, 384, 6) if cuda else (16, 96, 3)
    data = StayDataset(*build_cohort(folder))
    loader = DataLoader(data, batch_size, shuffle=True, drop_last=True, num_workers=2 if cuda else 1,
                        persistent_workers=True, pin_memory=cuda)
    model = ReadmissionNet(dim, layers, data.static.shape[1]).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.3, device=device))
    step, t0 = 0, time.perf_counter()
    while True:
        for series, static, label in loader:
            series, static, label = (t.to(device, non_blocking=True) for t in (series, static, label))
            loss = loss_fn(model(series, static), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if time.perf_counter() - t0 > seconds:
                if cuda:
                    torch.cuda.synchronize()
                took = time.perf_counter() - t0
                return step / took, step * batch_size / took
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(80)
    with tempfile.TemporaryDirectory() as tmp:
        sps, smp = train(tmp)
    print(f"{sps:.2f} steps/s, {smp:.1f} samples/s")
