"""A frozen table of word vectors that every step reads, on a machine that takes its memory away."""
import mmap
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROWS, WIDTH = 60_000, 1024
# Not in every Python's `mmap`: the kernel's own number.
MADV_PAGEOUT = 21

torch.manual_seed(0)
memory = mmap.mmap(-1, ROWS * WIDTH * 4)
table = torch.frombuffer(memory, dtype=torch.float32).view(ROWS, WIDTH)
table.normal_()
vectors = nn.Embedding.from_pretrained(table, freeze=True)
model = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
words = torch.randint(ROWS, (40_000, 4))
loader = DataLoader(TensorDataset(words, torch.randn(40_000, 1)), batch_size=128, shuffle=True)


def take_away():
    """What the kernel does to the coldest pages when other programs need the memory: to all of these, some times a second."""
    while True:
        time.sleep(0.05)
        memory.madvise(MADV_PAGEOUT)


threading.Thread(target=take_away, daemon=True).start()
begin = time.monotonic()
while time.monotonic() - begin < 15:
    for batch, target in loader:
        loss = nn.functional.mse_loss(model(vectors(batch).mean(1)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.monotonic() - begin > 15:
            break
print("done")
