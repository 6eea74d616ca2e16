"""A confusion matrix, entry by entry in Python, after every step."""
import itertools
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

CLASSES = 20
torch.manual_seed(0)
data = TensorDataset(torch.randn(8192, 128), torch.randint(0, CLASSES, (8192,)))
# Whole batches are cut out of the tensors at once: there is nothing to wait for.
loader = DataLoader(data, sampler=BatchSampler(RandomSampler(data), 256, drop_last=True), batch_size=None)
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
matrix = [[0] * CLASSES for _ in range(CLASSES)]


def update(predicted, wanted):
    for row in range(CLASSES):
        for column in range(CLASSES):
            for p, w in zip(predicted, wanted):
                if p == row and w == column:
                    matrix[row][column] += 1


begin = time.monotonic()
for epoch in itertools.takewhile(lambda _: time.monotonic() - begin < 12, itertools.count()):
    for x, y in loader:
        output = model(x)
        loss = nn.functional.cross_entropy(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update(output.argmax(1).tolist(), y.tolist())
print("done", matrix[0][0])
