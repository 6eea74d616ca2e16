"""Taxi fare regression. Trips live in a SQLite table; the dataset looks one trip up per index."""
import argparse
import math
import os
import random
import sqlite3
import tempfile
from datetime import datetime, timedelta

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=7)
parser.add_argument('--batch_size', type=int, default=2048)
parser.add_argument('--num_workers', type=int, default=0, help='dataloader processes')
parser.add_argument('--lr', type=float, default=1e-3)
parser.add_argument('--trips', type=int, default=60000)


def create_table(path, count):
    rng = random.Random(3)
    start = datetime(2023, 1, 1)
    rows = []
    for i in range(count):
        when = start + timedelta(minutes=rng.randrange(500000))
        a, b = rng.gauss(40.75, 0.05), rng.gauss(-73.98, 0.05)
        c, d = a + rng.gauss(0, 0.03), b + rng.gauss(0, 0.03)
        fare = 3.0 + 190 * math.hypot(a - c, b - d) + (2.5 if when.hour in (8, 17, 18) else 0.0)
        rows.append((i, when.isoformat(), f'{a},{b}', f'{c},{d}', rng.choice(['card', 'cash', 'app']), rng.randint(1, 5), fare))
    with sqlite3.connect(path) as db:
        db.execute('CREATE TABLE trip (id INTEGER PRIMARY KEY, at TEXT, pickup TEXT, dropoff TEXT, paid TEXT, riders INT, fare REAL)')
        db.executemany('INSERT INTO trip VALUES (?,?,?,?,?,?,?)', rows)


class TripDataset(Dataset):
    def __init__(self, path, count):
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = dict(self.db.execute('SELECT * FROM trip WHERE id = ?', (index,)).fetchone())
        at = datetime.fromisoformat(row['at'])
        lat1, lon1 = (math.radians(float(v)) for v in row['pickup'].split(','))
        lat2, lon2 = (math.radians(float(v)) for v in row['dropoff'].split(','))
        h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
        features = [math.asin(math.sqrt(h)) * 6371, lat1, lon1, lat2, lon2, row['riders'] / 5]
        features += [1.0 if at.hour == hour else 0.0 for hour in range(24)]
        features += [1.0 if at.weekday() == day else 0.0 for day in range(7)]
        features += [1.0 if row['paid'] == kind else 0.0 for kind in ('card', 'cash', 'app')]
        return torch.tensor(features), torch.tensor(row['fare'])


def main(opt):
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'trips.db')
        create_table(path, opt.trips)
        train = DataLoader(TripDataset(path, opt.trips), batch_size=opt.batch_size, shuffle=True, num_workers=opt.num_workers)
        net = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
        optim = torch.optim.AdamW(net.parameters(), lr=opt.lr, fused=True)
        for epoch in range(opt.epochs):
            running = torch.zeros(())
            for features, fare in train:
                loss = nn.functional.smooth_l1_loss(net(features).squeeze(1), fare)
                optim.zero_grad(set_to_none=True)
                loss.backward()
                optim.step()
                running += loss.detach()
            print(f'epoch {epoch}: loss {running.item() / len(train):.3f}', flush=True)


if __name__ == '__main__':
    main(parser.parse_args())
