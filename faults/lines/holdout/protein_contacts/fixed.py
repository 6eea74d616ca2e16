"""Predict which residue pairs touch, from sequences of different lengths."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Proteins(Dataset):
    def __init__(self, n=2000):
        g = torch.Generator().manual_seed(7)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(60, 110, (1,), generator=g))
            residues = torch.randint(1, 21, (length,), generator=g)
            xyz = torch.randn(length, 3, generator=g).cumsum(0)
            contacts = (torch.cdist(xyz, xyz) < 4).to(torch.uint8)
            self.items.append((residues, contacts))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    longest = max(len(residues) for residues, _ in items)
    residues = torch.zeros(len(items), longest, dtype=torch.long)
    contacts = torch.zeros(len(items), longest, longest)
    for i, (r, c) in enumerate(items):
        residues[i, : len(r)] = r
        contacts[i, : len(r), : len(r)] = c
    return residues, contacts


class ContactNet(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.embed = nn.Embedding(21, dim, padding_idx=0)
        self.mix = nn.Sequential(nn.Conv1d(dim, dim, 7, padding=3), nn.GELU(), nn.Conv1d(dim, dim, 7, padding=3))
        self.left = nn.Linear(dim, 48)
        self.right = nn.Linear(dim, 48)

    def forward(self, residues):
        h = self.embed(residues)
        h = h + self.mix(h.transpose(1, 2)).transpose(1, 2)
        return self.left(h) @ self.right(h).transpose(1, 2)


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.model = ContactNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loader = DataLoader(Proteins(), batch_size=32, shuffle=True, drop_last=True, collate_fn=collate)
        self.seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))

    def step(self, residues, contacts):
        mask = residues.ne(0).float()
        weight = mask[:, :, None] * mask[:, None, :]
        loss = F.binary_cross_entropy_with_logits(self.model(residues), contacts, weight)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self):
        done, since = 0, None
        while True:
            for residues, contacts in self.loader:
                self.step(residues, contacts)
                done += 1
                if done == 5:
                    since = time.time()
                if since and time.time() - since >= self.seconds:
                    print(f"{(done - 5) / (time.time() - since):.2f} steps/s")
                    return


if __name__ == "__main__":
    Trainer().fit()
