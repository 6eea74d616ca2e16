"""Multiple-instance learning: one label for a bag of patch embeddings."""
import os
import time

import torch
from torch import nn

BAGS, PATCHES, DIM = 256, 24, 128
SECONDS = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))


class GatedAttentionPool(nn.Module):
    def __init__(self, dim, hidden=64):
        super().__init__()
        self.value = nn.Linear(dim, hidden)
        self.gate = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, patches):
        weights = self.score(torch.tanh(self.value(patches)) * torch.sigmoid(self.gate(patches)))
        return (weights.softmax(-2) * patches).sum(-2)


class BagClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, DIM), nn.ReLU())
        self.pool = GatedAttentionPool(DIM)
        self.head = nn.Linear(DIM, 2)

    def forward(self, bags):
        bags = self.project(bags)
        pooled = []
        for bag in bags:
            pooled.append(self.pool(bag))
        return self.head(torch.stack(pooled))


def batches(seed=9):
    g = torch.Generator().manual_seed(seed)
    data = torch.randn(4096, PATCHES, DIM, generator=g)
    labels = torch.randint(0, 2, (4096,), generator=g)
    data[labels == 1, 0] += 1.5
    while True:
        order = torch.randperm(4096, generator=g)
        for chunk in order.split(BAGS):
            yield data[chunk], labels[chunk]


def main():
    torch.manual_seed(0)
    model = BagClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss_function = nn.CrossEntropyLoss()
    begin, n = None, 0
    for i, (bags, labels) in enumerate(batches()):
        logits = model(bags)
        loss = loss_function(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i == 4:
            begin = time.perf_counter()
        elif i > 4:
            n += 1
            if time.perf_counter() - begin > SECONDS:
                break
    print(f"steps/s {n / (time.perf_counter() - begin):.2f}")


if __name__ == "__main__":
    main()
