"""Steady loops of several kinds: while the probe only writes down what happens, its counts stay exact. And the quick way to reckon
up a stretch gives what the plain way gives, word for word."""

import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from _flatout_probe import clock, coast, guard
from _flatout_probe.patches import sync
from _flatout_probe.ring import private_words, W_BATCHES, W_EVAL_BATCHES, W_HIST, W_SAMPLES, W_STEPS, W_SUMS, BUCKETS

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
done = {"steps": 0, "samples": 0, "batches": 0, "coasted": 0, "eval": 0}


def step(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    done["steps"] += 1
    done["coasted"] += clock.coasting


def train(loader, every=1):
    for number, batch in enumerate(loader):
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        done["batches"] += 1
        if number % every == every - 1:
            step(x)
            done["samples"] += len(x) * every


class Stream(IterableDataset):
    def __iter__(self):
        return (torch.randn(8) for _ in range(1003))


rows = torch.randn(1003, 8)
table = DataLoader(TensorDataset(rows), batch_size=4, shuffle=True)
for _ in range(2):
    train(table)
    model.eval()
    with torch.no_grad():
        for (x,) in table:
            model(x)
            done["eval"] += 1
    model.train()
coasted = done["coasted"]
assert coasted > 200, coasted
train(DataLoader(Stream(), batch_size=4))
assert done["coasted"] > coasted + 100, "batches of unequal sizes are measured"
train(DataLoader(TensorDataset(rows[:1000]), batch_size=4), every=2)
# A loader that is left in the middle, and one that is asked for while another one's batch is made.
for (x,) in table:
    done["batches"] += 1
    done["samples"] += 4
    step(x)
    if done["steps"] % 50 == 0:
        break


class Nested(TensorDataset):
    def __getitem__(self, index):
        inner = DataLoader(TensorDataset(rows[:2]), batch_size=2)
        return (super().__getitem__(index)[0] + next(iter(inner))[0].mean(),)


train(DataLoader(Nested(rows[:40]), batch_size=4))

clock.switch(clock.here())
words = clock.words
assert not guard.off, guard.told
assert words[W_STEPS] == done["steps"], (words[W_STEPS], done)
assert words[W_BATCHES] == done["batches"], (words[W_BATCHES], done)
assert words[W_SAMPLES] == done["samples"], (words[W_SAMPLES], done)
assert words[W_EVAL_BATCHES] == done["eval"], (words[W_EVAL_BATCHES], done)
assert sum(words[W_HIST + 7 * BUCKETS + bucket] for bucket in range(BUCKETS)) == done["steps"] - 1


def written(choose, steps, spans, tail):
    """Steps with such stretches, reads of the device here and there, and sometimes a step of another kind."""
    now, entries, kinds = clock.since, [], []
    often, odd = choose.choice([0, 0.1, 0.5]), choose.choice([0, 0, 0.02])
    for _ in range(steps):
        kinds += [0, 2, *spans, *([7, 3] if choose.random() < often / 4 else []), 6]
        kinds += [7, 3] if choose.random() < often else []
        kinds += choose.choice([[0, 2, 0, 2, 6], [6]]) if choose.random() < odd else []
    for kind in kinds + tail:
        now += choose.randrange(1, 5_000_000)
        entries.append(now * 8 + kind)
    return entries


class Info:
    number = 3


# Words of our own: the reader writes into the file's too.
words = clock.words = private_words()
PLAIN = ("phase", "since", "base", "fed", "again", "resting", "batch_samples", "last_step", "last_sums")
columns, in_columns = coast.alike, []


def quick(counters, sums):
    in_columns.append(columns(counters, sums))
    return in_columns[-1]


for seed in range(200):
    choose = random.Random(seed)
    clock.phase = clock.base = clock.OTHER
    clock.since = clock.last_step = 10**12 + choose.randrange(10**9)
    clock.resting, clock.batch_samples, clock.fed, clock.again = words[W_SUMS + clock.OTHER], 0, False, False
    clock.last_sums = words[clock.SUMS].tolist()
    spans = choose.choice([[], [7, 1], [7, 1, 7, 1], [7, 3], [7, 1, 7, 3]])
    entries = written(choose, choose.randrange(40), spans, choose.choice([[], [0], [0, 2], [0, 2, 0, 2], [0, 2, 6, 6]]))
    sizes = [choose.randrange(1, 9) for _ in range(200)] if seed % 2 else None
    before, counted, found = {name: getattr(clock, name) for name in PLAIN}, bytes(words), []
    for way in (quick, lambda counters, sums: 0):
        words[:] = memoryview(counted).cast("Q")
        for name, value in before.items():
            setattr(clock, name, list(value) if name == "last_sums" else value)
        coast.alike, state = way, [Info, 0, 5, 0, False]
        coast.begin(1, 2, state, 7, None, len if sizes else None)
        coast._sizes[:] = sizes or []
        clock.log.extend(entries)
        clock.settle()
        found.append((bytes(words), [getattr(clock, name) for name in PLAIN], state[2:4]))
    assert not guard.off, guard.told
    assert found[0] == found[1], seed
assert sum(map(bool, in_columns)) > 100, in_columns


class Card:
    """Stands for a tensor: it only says where it is."""

    is_cuda = False

    def to(self, device):
        moved = Card()
        moved.is_cuda = device == "cuda"
        return moved


# A copy to the device is the same stretch whether the loop coasts or not.
Card.to = sync.timed_copy(Card.to, "to")
sync._plain, sync._is_cuda = (Card,), lambda card: card.is_cuda
coast.alike = columns
for coasting in (False, True):
    clock.phase, clock.since = clock.COMPUTE, clock.perf_counter_ns()
    before = words[W_SUMS + clock.TRANSFER]
    if coasting:
        coast.begin(1, 2, [Info, 0, 5, 0, False], 7, None, None)
    Card().to("cuda").to("cuda")
    assert len(clock.log) == 2 * coasting
    assert (words[W_SUMS + clock.TRANSFER] > before) is not coasting
    clock.settle()
    assert words[W_SUMS + clock.TRANSFER] > before
assert not guard.off, guard.told
print("exact")
sys.stdout.flush()
# The clock stands in a made-up time now: nothing of it may go into the record.
import os

os._exit(0)
