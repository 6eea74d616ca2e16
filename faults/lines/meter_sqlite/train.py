"""Household load classification from smart meter day profiles kept in SQLite."""
import os
import sqlite3
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def populate(db_path, days=6000, tables=150):
    rng = np.random.default_rng(5)
    con = sqlite3.connect(db_path)
    for t in range(tables):
        con.execute(f"CREATE TABLE meta_{t:03d} (id INTEGER PRIMARY KEY, a TEXT, b REAL, c REAL)")
        con.execute(f"CREATE INDEX meta_{t:03d}_a ON meta_{t:03d} (a)")
    con.execute("CREATE TABLE profile (day INTEGER PRIMARY KEY, kind INTEGER, load BLOB)")
    load = rng.gamma(2.0, 1.0, (days, 288)).astype(np.float32)
    kind = rng.integers(0, 6, days)
    con.executemany("INSERT INTO profile VALUES (?, ?, ?)",
                    ((i, int(kind[i]), load[i].tobytes()) for i in range(days)))
    con.commit()
    con.close()
    return days


def connect(db_path):
    con = sqlite3.connect(db_path)
    con.execute("PRAGMA query_only = ON")
    con.execute("PRAGMA cache_size = -20000")
    return con


def fetch_profile(db_path, day):
    con = connect(db_path)
    row = con.execute("SELECT load, kind FROM profile WHERE day = ?", (day,)).fetchone()
    con.close()
    return row


class MeterDays(Dataset):
    def __init__(self, db_path, days):
        self.db_path, self.days = db_path, days

    def __len__(self):
        return self.days

    def __getitem__(self, day):
        blob, kind = fetch_profile(self.db_path, day)
        x = torch.frombuffer(bytearray(blob), dtype=torch.float32)
        return x, kind


class DayNet(nn.Module):
    def __init__(self, width=24, kinds=6):
        super().__init__()
        blocks, cin = [], 1
        for dilation in (1, 2, 4, 8):
            blocks += [nn.Conv1d(cin, width, 5, padding=2 * dilation, dilation=dilation),
                       nn.BatchNorm1d(width), nn.GELU()]
            cin = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        return self.head(self.blocks(x).mean(dim=2))


def train_epoch(model, loader, opt, device, deadline):
    n = 0
    for x, y in loader:
        x, y = torch.log1p(x.to(device)).unsqueeze(1), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        n += 1
        if time.perf_counter() > deadline:
            break
    return n, loss.item()


def main(batch_size=32, seconds=14.0):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as tmp:
        db = os.path.join(tmp, "meters.db")
        data = MeterDays(db, populate(db))
        loader = DataLoader(data, batch_size, shuffle=True, drop_last=True)
        model = DayNet().to(device)
        opt = torch.optim.Adam(model.parameters(), 1e-3)
        t0 = time.perf_counter()
        total = 0
        while time.perf_counter() - t0 < seconds:
            n, loss = train_epoch(model, loader, opt, device, t0 + seconds)
            total += n
            print(f"{total} steps done, loss {loss:.3f}")
        dt = time.perf_counter() - t0
    print(f"speed: {total / dt:.2f} steps/s ({total * batch_size / dt:.0f} samples/s)")


if __name__ == "__main__":
    main()
