"""Train a small CNN on board positions stored as text (FEN-like), with checkpoints."""
import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEV = "cuda" if CUDA else "cpu"
PIECES = ".pnbrqkPNBRQK"
SIDE = 12


def make_positions(n=1500):
    rng = random.Random(0)
    rows = []
    for _ in range(n):
        cells = rng.choices(PIECES, weights=[20] + [1] * 12, k=SIDE * SIDE)
        board = "/".join("".join(cells[r * SIDE:(r + 1) * SIDE]) for r in range(SIDE))
        rows.append((board, sum(c.isupper() for c in cells) / 40 - sum(c.islower() for c in cells) / 40))
    return rows


def parse(board):
    planes = torch.zeros(len(PIECES), SIDE, SIDE)
    for r, line in enumerate(board.split("/")):
        for c, piece in enumerate(line):
            planes[PIECES.index(piece), r, c] = 1.0
    return planes


class Grid(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.planes = [parse(board) for board, _ in rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.planes[i], torch.tensor(self.rows[i][1])


class ValueNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(len(PIECES), w, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(w, w, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(w * SIDE * SIDE // 4, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "latest.pt")
    loader = DataLoader(Grid(make_positions()), batch_size=64 if CUDA else 32, shuffle=True, drop_last=True)
    model = ValueNet(256 if CUDA else 64).to(DEV)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, start, running = 0, time.time(), True
    while running:
        for x, y in loader:
            x, y = x.to(DEV), y.to(DEV)
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 500 == 0:
                torch.save({"step": step, "model": model.state_dict(), "opt": opt.state_dict()}, path)
            if time.time() - start > 14:
                running = False
                break
    if CUDA:
        torch.cuda.synchronize()
    print(f"loss {loss.item():.4f}; {step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
