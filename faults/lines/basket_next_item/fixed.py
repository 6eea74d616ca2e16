"""Next-item prediction from the purchase history of each user (GRU4Rec-like)."""
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEMS = 1000
USERS = 4000
MAXLEN = 30
CUTOFF = 570_000


def simulate_purchases(seed=9):
    rng = np.random.default_rng(seed)
    n = USERS * 150
    return pd.DataFrame({
        "user_id": np.concatenate([np.repeat(np.arange(USERS), 2), rng.integers(0, USERS, n - 2 * USERS)]),
        "item_id": rng.zipf(1.3, n) % (ITEMS - 1) + 1,
        "timestamp": rng.permutation(n),
    })


def histories(purchases):
    ordered = purchases[purchases["timestamp"] < CUTOFF].sort_values("timestamp")
    return {user: items.to_numpy() for user, items in ordered.groupby("user_id")["item_id"]}


class NextItem(Dataset):
    def __init__(self, purchases):
        self.users = purchases["user_id"].unique()
        self.items = histories(purchases)

    def __len__(self):
        return len(self.users)

    def __getitem__(self, i):
        items = self.items[self.users[i]][-MAXLEN - 1:]
        seq = np.zeros(MAXLEN + 1, dtype=np.int64)
        seq[-len(items):] = items
        return torch.from_numpy(seq[:-1]), torch.from_numpy(seq[1:])


class SessionGRU(nn.Module):
    def __init__(self, dim=64, hidden=128):
        super().__init__()
        self.emb = nn.Embedding(ITEMS, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, num_layers=1, batch_first=True)
        self.out = nn.Linear(hidden, ITEMS)

    def forward(self, seq):
        h, _ = self.gru(self.emb(seq))
        return self.out(h)


def train(batch_size=32, limit=14.0):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataset = NextItem(simulate_purchases())
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)
    model = SessionGRU().to(device)
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    crit = nn.CrossEntropyLoss(ignore_index=0)
    t_start = time.monotonic()
    step = 0
    epoch = 0
    while time.monotonic() - t_start < limit:
        for seq, target in loader:
            seq, target = seq.to(device), target.to(device)
            logits = model(seq)
            loss = crit(logits.flatten(0, 1), target.flatten())
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optim.step()
            step += 1
            if time.monotonic() - t_start >= limit:
                break
        print("epoch", epoch, "loss", round(loss.item(), 4))
        epoch += 1
    took = time.monotonic() - t_start
    print(f"done, {step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(9)
    train()
