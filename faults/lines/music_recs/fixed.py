import random
import time

import numpy as np
import torch
from torch import nn

N_USERS, N_TRACKS, DIM = 6000, 250_000, 32
BATCH, NEGATIVES = 256, 8
RUN_FOR = 12.0


def listening_log(seed):
    """Per-user play histories; popular tracks are played more often."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(300, 900, N_USERS)
    plays = (rng.beta(0.6, 1.4, sizes.sum()) * N_TRACKS).astype(np.int64)
    cuts = np.cumsum(sizes)[:-1]
    return [set(part.tolist()) for part in np.split(plays, cuts)], plays, np.repeat(np.arange(N_USERS), sizes)


class NegativeDrawer:
    def __init__(self, histories, seed):
        self.histories = histories
        self.rng = random.Random(seed)

    def draw(self, user):
        played = self.histories[user]
        out = []
        while len(out) < NEGATIVES:
            track = int(self.rng.random() * N_TRACKS)
            if track not in played:
                out.append(track)
        return out

    def __call__(self, users):
        return torch.tensor([self.draw(u) for u in users.tolist()])


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(N_USERS, DIM, sparse=True)
        self.tracks = nn.Embedding(N_TRACKS, DIM, sparse=True)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.tracks.weight, std=0.1)
        self.tower = nn.Sequential(
            nn.Linear(2 * DIM, 128), nn.ReLU(),
            nn.Linear(128, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, user, tracks):
        u = self.users(user).unsqueeze(1).expand(-1, tracks.shape[1], -1)
        v = self.tracks(tracks)
        return self.tower(torch.cat([u, v], -1)).squeeze(-1) + (u * v).sum(-1)


def ranking_loss(scores):
    return -nn.functional.logsigmoid(scores[:, :1] - scores[:, 1:]).mean()


def batches(users, tracks, generator):
    order = torch.randperm(len(users), generator=generator)
    for lo in range(0, len(order) - BATCH, BATCH):
        pick = order[lo:lo + BATCH]
        yield users[pick], tracks[pick]


def train():
    torch.manual_seed(5)
    histories, plays, owners = listening_log(seed=5)
    plays, owners = torch.from_numpy(plays), torch.from_numpy(owners)
    draw = NegativeDrawer(histories, seed=6)
    model = Scorer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(8)

    steps, smoothed = 0, 0.69
    began = time.monotonic()
    while True:
        for user, positive in batches(owners, plays, generator):
            negatives = draw(user)
            scores = model(user, torch.cat([positive.unsqueeze(1), negatives], 1))
            loss = ranking_loss(scores)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            smoothed += 0.02 * (loss.item() - smoothed)
            steps += 1
            if steps % 200 == 0:
                print(f"step {steps}: {smoothed:.4f}", flush=True)
            if time.monotonic() - began > RUN_FOR:
                return steps, smoothed


if __name__ == "__main__":
    n, final = train()
    print(f"done, loss {final:.4f}")
    print(f"steps: {n}")
