import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

SPEAKERS, CLIPS = 400, 60


class SpeakerBatches(Sampler):
    """P speakers with K clips each; speakers seen less often are preferred."""

    def __init__(self, labels, p=32, k=4, seed=0):
        self.labels = labels
        self.p, self.k = p, k
        self.rng = np.random.default_rng(seed)
        self.seen = np.ones(SPEAKERS)

    def __len__(self):
        return len(self.labels) // (self.p * self.k)

    def __iter__(self):
        for _ in range(len(self)):
            odds = (1 / self.seen) / (1 / self.seen).sum()
            chosen = self.rng.choice(SPEAKERS, self.p, replace=False, p=odds)
            self.seen[chosen] += 1
            batch = []
            for speaker in chosen:
                clips = [i for i, label in enumerate(self.labels) if label == speaker]
                batch.extend(self.rng.choice(clips, self.k, replace=False).tolist())
            yield batch


def triplet_loss(z, labels, margin=0.3):
    z = nn.functional.normalize(z, dim=1)
    distance = 1 - z @ z.T
    same = labels[:, None] == labels[None]
    hardest_positive = distance.masked_fill(~same, -1).amax(1)
    hardest_negative = distance.masked_fill(same, 3).amin(1)
    return torch.relu(hardest_positive - hardest_negative + margin).mean()


def make_clips():
    g = torch.Generator().manual_seed(2)
    labels = torch.arange(SPEAKERS).repeat_interleave(CLIPS)
    voices = torch.randn(SPEAKERS, 40, 1, generator=g)
    clips = voices[labels] + torch.randn(SPEAKERS * CLIPS, 40, 50, generator=g)
    return clips, labels


torch.manual_seed(0)
clips, labels = make_clips()
sampler = SpeakerBatches(labels.tolist())
loader = DataLoader(TensorDataset(clips, labels), batch_sampler=sampler)
net = nn.Sequential(
    nn.Conv1d(40, 192, 5), nn.ReLU(), nn.Conv1d(192, 192, 3, dilation=2), nn.ReLU(),
    nn.Conv1d(192, 192, 3, dilation=3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(192, 96),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4)
limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))

n, t0 = 0, None
running = True
while running:
    for x, y in loader:
        loss = triplet_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n += 1
        if n == 5:
            t0 = time.time()
        if n > 5 and time.time() - t0 > limit:
            running = False
            break
print(f"{(n - 5) / (time.time() - t0):.2f} steps per second (loss {float(loss.detach()):.3f})")
