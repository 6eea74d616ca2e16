"""Next-item prediction over shopping sessions kept as plain Python lists."""
import gc
import random
import time

import torch
from torch import nn

ITEMS = 4000
SESSIONS = 100_000
MAX_LEN = 12
BATCH = 384
STEPS = 80


def free_memory():
    """Keeps the footprint flat between batches."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def make_sessions(rng):
    sessions = []
    for _ in range(SESSIONS):
        first = rng.randrange(ITEMS)
        sessions.append([(first + 7 * k) % ITEMS for k in range(4 + first % 8)])
    return sessions


def batches(sessions, rng):
    while True:
        picked = [sessions[rng.randrange(SESSIONS)] for _ in range(BATCH)]
        x = torch.tensor([s[:-1] + [0] * (MAX_LEN + 1 - len(s)) for s in picked])
        yield x, torch.tensor([s[-1] for s in picked])


class NextItem(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.items = nn.Embedding(ITEMS, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, ITEMS)

    def forward(self, x):
        _, state = self.gru(self.items(x))
        return self.out(state[0])


def main():
    rng = random.Random(17)
    torch.manual_seed(17)
    stream = batches(make_sessions(rng), rng)
    model = NextItem()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    started, seen = time.time(), 0
    for step in range(1, STEPS + 1):
        x, y = next(stream)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        seen += len(y)
        free_memory()
        if step % 20 == 0:
            print(f'step {step:4d}  loss {loss.item():.3f}  {seen / (time.time() - started):.0f} sessions/s', flush=True)


if __name__ == '__main__':
    main()
