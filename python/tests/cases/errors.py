import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


class Fails(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 20:
            raise KeyError("boom")
        return torch.ones(4)


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.ones(4)
        raise ValueError("stream")


# case: item_of_many
torch.ones(3).item()

# case: item_of_many_with_gradient
torch.ones(3, requires_grad=True).item()

# case: truth_of_many
if torch.ones(3):
    pass

# case: numpy_with_gradient
torch.ones(3, requires_grad=True).numpy()

# case: no_batch_size
DataLoader([1, 2], batch_size=0)

# case: unknown_argument_of_a_loader
DataLoader([1, 2], bogus=3)

# case: workers_of_a_negative_number
DataLoader([1, 2], num_workers=-1)

# case: no_parameters
torch.optim.SGD([], lr=1)

# case: negative_learning_rate
torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=-1)

# case: data_set
for _ in DataLoader(Fails(), batch_size=8):
    pass

# case: data_set_in_a_worker
for _ in DataLoader(Fails(), batch_size=8, num_workers=1):
    pass

# case: stream
for _ in DataLoader(Stream(), batch_size=2):
    pass

# case: collate
def collate(items):
    raise RuntimeError("collate")

for _ in DataLoader(TensorDataset(torch.ones(9, 4)), batch_size=3, collate_fn=collate):
    pass

# case: collate_in_a_worker
def collate(items):
    raise RuntimeError("collate")

for _ in DataLoader(TensorDataset(torch.ones(9, 4)), batch_size=3, collate_fn=collate, num_workers=1):
    pass

# case: next_after_the_end
iterator = iter(DataLoader(TensorDataset(torch.ones(2, 1)), batch_size=2))
next(iterator)
next(iterator)

# case: save_where_nothing_is
torch.save(torch.ones(1), "/nonexistent/x.pt")

# case: save_what_cannot_be
torch.save(lambda: 1, "x.pt")

# case: step_of_a_closure
optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1)
optimizer.step(lambda: 1 / 0)

# case: mode_that_is_none
nn.Linear(1, 1).train(mode="yes")

# case: worker_warning
import warnings

warnings.simplefilter("always")
DataLoader(TensorDataset(torch.ones(8, 1)), num_workers=99, batch_size=2, pin_memory=True)

# case: scheduler_warning
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scheduler.step()
optimizer.step()
print(scheduler.get_last_lr())

# case: tracer_warnings
print(torch.jit.trace(lambda x: x * x.sum().item() if x.sum() > 0 else x, torch.ones(2)).code)
print(torch.jit.trace(lambda x: x * x.sum().item(), torch.ones(2, requires_grad=True)).code)

# case: interrupt_in_a_data_set
class Interrupted(Fails):
    def __getitem__(self, index):
        raise KeyboardInterrupt

for _ in DataLoader(Interrupted()):
    pass

# case: exit_in_a_data_set
class Ends(Fails):
    def __getitem__(self, index):
        raise SystemExit(5)

for _ in DataLoader(Ends()):
    pass

# case: errors_of_signal_handlers
import signal

class Alarm(Exception):
    pass

armed = False

def handler(*_):
    global armed
    if armed:
        armed = False
        raise Alarm

# Again and again: torch itself swallows one now and then.
signal.signal(signal.SIGALRM, handler)
weight = nn.Parameter(torch.ones(1))
caught = 0
for _ in range(40):
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        while True:
            armed = True
            for (x,) in DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4):
                (x * weight).sum().item()
    except Alarm:
        caught += 1
print(caught)

# case: errors_of_signal_handlers_during_collections
import gc
import signal

class Alarm(Exception):
    pass

armed = False

def handler(*_):
    global armed
    if armed:
        armed = False
        raise Alarm

# Nearly all of the time is spent in collections and their callbacks.
gc.set_threshold(1, 1, 1)
signal.signal(signal.SIGALRM, handler)
weight = nn.Parameter(torch.ones(1))
caught = 0
for _ in range(100):
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        while True:
            armed = True
            [[] for _ in range(10)]
            gc.collect(0)
    except Alarm:
        caught += 1
print(caught)

# case: depth_of_the_stack
import inspect

class Deep(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        print(len(inspect.stack()), [frame.function for frame in inspect.stack()])
        return torch.ones(1)

for _ in DataLoader(Deep(), batch_size=2):
    pass

# case: recursion
import sys

def deeper(tensor, depth):
    return depth if tensor.item() < 0 else deeper(tensor, depth + 1)

try:
    deeper(torch.ones(1, requires_grad=True), 0)
except RecursionError as error:
    print(error)
