"""Each change that `--auto` makes by default leaves losses, weights and random numbers as they are, to the last bit: put in force and taken
back in the middle of a training, with workers and without. What only exists on a GPU is not here."""

import gc
import types

import pytest

from conftest import need

torch = need("torch")

from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from _flatout_apply.changes import copies, loader, memory, steps, zero  # noqa: E402
from _flatout_apply.control import Control  # noqa: E402
from _flatout_apply.pool import Pool  # noqa: E402
from _flatout_probe.patches import zeroing  # noqa: E402
from _flatout_probe.patches.loader import Loader  # noqa: E402

ROWS, BATCH, EPOCHS, PUT, BACK = 130, 8, 4, 6, 45


class Items(Dataset):
    def __init__(self):
        self.x = torch.rand(ROWS, 6, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return self.x[index], self.x[index].sum().reshape(1)


class Training:
    """A plain loop. `self` stands for what `--auto` knows of it."""

    def __init__(self, data, workers, **more):
        torch.manual_seed(3)
        self.torch, self.cpus, self.loader = torch, 4, DataLoader(data, BATCH, shuffle=True, num_workers=workers, **more)
        self.model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.latest, self.settled, self.written = None, 0, []
        self.control = Control(self.iterator_of)
        self.control.loader, self.control.info = lambda: self.loader, Loader(0, workers, True, False)
        self.before = types.SimpleNamespace(step_s=lambda: 0.001, share=lambda phase: 0.5)
        self.shapes = types.SimpleNamespace(bytes=lambda: 1000, tensors=lambda: 2, fixed=lambda: True)

    def iterator_of(self, one):
        return self.latest

    def losses(self, change=None, fills=False):
        step = 0
        for _ in range(EPOCHS):
            self.latest = iter(self.loader)
            self.control.iterated(self.loader, self.latest)
            for x, y in self.latest:
                if change is not None and step == PUT:
                    reason = change.put()
                    assert reason is None, reason
                if change is not None and step == BACK:
                    assert change.failed() is None
                    change.back()
                loss = (self.model(x.to("cpu")) - y).square().mean()
                self.optimizer.zero_grad(set_to_none=not fills)
                loss.backward()
                self.optimizer.step()
                self.written.append((loss.item().hex(), x.sum().item().hex(), torch.rand(1).item().hex()))
                step += 1
        assert step > BACK
        if change is not None:
            change.end()
        return [*self.written, *(tuple(part.flatten().tolist()) for part in self.model.parameters())]


def workers(training, count=2):
    return loader.Workers(training, training.loader, count, 0.5, 1.5)


CHANGES = {
    "loader.num_workers": (0, workers),
    "more workers": (1, workers),
    "fewer workers": (3, workers),
    "loader.persistent_workers": (1, lambda training: loader.Workers(training, training.loader, 1, 0.5, 1.5, key="loader.persistent_workers", value="on")),
    "loader.prefetch_factor": (2, lambda training: loader.Longer(training, training.loader, 2)),
    "gc.freeze": (0, lambda training: memory.Freeze(1.1)),
    "gc.freeze before workers": (1, lambda training: memory.Freeze(1.1)),
    "malloc.keep": (0, lambda training: memory.Keep(1.1)),
    "copy.non_blocking": (0, lambda training: copies.Overlapped(training, 1.1)),
}


@pytest.fixture(autouse=True)
def as_before():
    """Of torch and of Python's collector."""
    iterators = DataLoader._get_iterator
    yield
    DataLoader._get_iterator = iterators
    gc.unfreeze()


@pytest.mark.parametrize("name", CHANGES)
def test_losses_are_the_same_to_the_last_bit(name):
    count, make = CHANGES[name]
    expected = Training(Items(), count).losses()
    training = Training(Items(), count)
    assert training.losses(make(training)) == expected


@pytest.mark.parametrize("count", [0, 1])
def test_whole_batches_leave_losses_alone(count):
    data = TensorDataset(*torch.rand(2, ROWS, 6, generator=torch.Generator().manual_seed(1)))
    data = TensorDataset(data.tensors[0], data.tensors[1][:, :1].contiguous())
    expected = Training(data, count).losses()
    training = Training(data, count)
    assert training.losses(loader.Batched(training, training.loader, 0.5)) == expected


def test_a_longer_queue_of_the_workers_of_a_change_leaves_losses_alone():
    expected = Training(Items(), 0).losses()
    training = Training(Items(), 0)

    class Both:
        first = workers(training)

        def put(self):
            reason = self.first.put()
            self.second = loader.Longer(training, training.loader, 2)
            assert isinstance(training.control.source, Pool)
            return reason or self.second.put()

        def failed(self):
            return self.first.failed()

        def back(self):
            self.second.back()
            self.first.back()

        def end(self):
            self.first.end()

    assert training.losses(Both()) == expected


def test_gradients_set_to_none_leave_losses_alone(monkeypatch):
    expected = Training(Items(), 0).losses(fills=True)
    training = Training(Items(), 0)
    monkeypatch.setattr(zero, "parameters", lambda: list(training.model.parameters()))
    monkeypatch.setattr(zeroing, "fills", True)
    for name, value in (("_touched", set()), ("_hooks", []), ("_missed", False), ("_steps", 0)):
        monkeypatch.setattr(zero, name, value)
    own = training.optimizer.step

    def step():
        own()
        if len(training.written) < PUT - 1:
            zero.stepped()

    training.optimizer.step = step

    class Late:
        def put(self):
            zero.done()
            self.switch = steps.Switch("zero_grad.set_to_none", zero.switch(torch), 1.01)
            assert training.model[0].weight.grad is not None
            return self.switch.put()

        def failed(self):
            return None

        def back(self):
            self.switch.back()

        def end(self):
            pass

    assert training.losses(Late(), fills=True) == expected


def test_objects_that_the_program_froze_stay_frozen():
    change = memory.Freeze(1.1)
    assert change.put() is None and gc.get_freeze_count() == change.frozen > 0
    change.back()
    assert gc.get_freeze_count() == 0
    kept = [[number] for number in range(1000)]
    assert change.put() is None
    kept += [[number] for number in range(1000)]
    gc.freeze()
    change.back()
    assert gc.get_freeze_count() > 0 and len(kept) == 2000
    assert memory.Freeze(1.1).put() == "frozen-already"


def test_a_collector_that_is_debugged_is_left_alone(capfd):
    gc.set_debug(gc.DEBUG_STATS)
    try:
        assert memory.Freeze(1.1).put() == "debugs-gc"
    finally:
        gc.set_debug(0)
    assert gc.get_freeze_count() == 0
