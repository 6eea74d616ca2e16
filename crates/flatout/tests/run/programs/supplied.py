"""Asks the probe what workers supply: pictures that take half a millisecond each."""

import gc
import json
import time

import torch
from torch.utils.data import DataLoader, Dataset

torch.multiprocessing.set_start_method("fork")


class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((8,), float(index))


loader = DataLoader(Slow(), batch_size=10)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()

from _flatout_apply.trials import batches, making, supply
from _flatout_probe import guard


def asked(counts, sizes, samples=10, freeze=False):
    result = {"sizes": sizes}
    supply.Supply(torch, counts, samples, freeze, result)
    return result["supply"]


def begin(worker):
    """Tells of what a worker has from the program whether collecting garbage walks it."""
    frozen.value = gc.get_freeze_count() > 0


# As a trial leaves it.
batches.take_part(2)
plain = {"samples": 10, "wait_s": 0.005}
told = {"supply": asked([2, 1, 0], [plain, {"samples": 40}, {"samples": 2, "wait_s": 0.001}])}
told["dear"] = asked([2], [{"samples": 10, "wait_s": 5.0}])
# Steps of several batches.
told["larger"] = asked([2], [{"samples": 20, "wait_s": 0.01}], 20)
# More workers than were asked for, and batches that take long: a part of them.
loader.num_workers = 3
told["own"] = asked([2], [{"samples": 10, "wait_s": 0.5}, {"samples": 2}])
loader.num_workers = 0
frozen = torch.multiprocessing.Value("b", -1)
loader.worker_init_fn, told["frozen"] = begin, []
for wish in (False, True):
    asked([1], [plain], freeze=wish)
    told["frozen"].append(frozen.value)
loader.worker_init_fn = None
# The last of these batches has ten.
told["made"] = [samples for samples, _ in making.sizes(torch, DataLoader(Slow(), batch_size=30), [8, 30])]
Slow.__getitem__ = lambda self, index: 1 // 0
told["broken"] = asked([2], [plain])
print(json.dumps({**told, "off": guard.off}))
