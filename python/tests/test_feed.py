"""Batches that come from elsewhere: the same samples in the same order, whatever is switched and whenever."""

import os
import signal
import sqlite3

import pytest

from conftest import need

torch = need("torch")

from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from _flatout_apply import observe, pool as pools, randomness, walk  # noqa: E402
from _flatout_apply.batched import Plan  # noqa: E402
from _flatout_apply.control import Control, knows_sampler  # noqa: E402
from _flatout_apply.feed import Own, Whole  # noqa: E402
from _flatout_apply.pool import Pool  # noqa: E402
from _flatout_apply.same import same  # noqa: E402
from _flatout_probe.patches.loader import Loader  # noqa: E402

ROWS, BATCH = 230, 8


class Items(Dataset):
    def __init__(self):
        self.x = torch.arange(ROWS * 3.0).reshape(ROWS, 3)

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        row = self.x[index]
        return row * 2, index


class Drawing(Items):
    """Draws at one sample only."""

    def __getitem__(self, index):
        row = self.x[index]
        if index == 99:
            row = row + torch.rand(3)
        return row, index


class Failing(Items):
    def __getitem__(self, index):
        if index == 99:
            raise KeyError("row 99")
        return self.x[index]


class Dying(Items):
    def __getitem__(self, index):
        if index == 99 and os.getpid() != PID:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.x[index]


PID = os.getpid()


def made(data, workers=0, **more):
    return DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers, **more)


def epochs(loader, switch=None, count=3, after=None):
    """All batches of some epochs, and the random numbers that the program draws in between; `switch(number, iterator)` is called between
    two batches."""
    torch.manual_seed(7)
    found, number = [], 0
    for _ in range(count):
        iterator = iter(loader)
        if after is not None:
            after(loader, iterator)
        for batch in iterator:
            found.append(batch)
            found.append(torch.rand(1))
            number += 1
            if switch is not None:
                switch(number, iterator)
    return found


def pool(loader, workers=2, proved=False):
    return Pool(loader, Loader(0, loader.num_workers, True, False), workers, 2, False, proved, 0.0)


class Switching:
    """Puts sources in force at some batches: `plan` maps the number of a batch to a source, or to None for the program's own way."""

    def __init__(self, loader, plan):
        self.latest, self.plan = {}, plan
        self.control = Control(lambda loader: self.latest.get("iterator"))
        self.control.loader, self.control.info = lambda: loader, Loader(0, loader.num_workers, True, False)

    def after(self, loader, iterator):
        self.latest["iterator"] = iterator
        self.control.iterated(loader, iterator)

    def switch(self, number, iterator):
        if number in self.plan:
            self.control.use(self.plan[number])


@pytest.fixture(autouse=True)
def own_iterators():
    before = DataLoader._get_iterator
    yield
    DataLoader._get_iterator = before


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("last", [False, True])
def test_sources_are_switched_between_batches(workers, persistent, last):
    more = {"persistent_workers": True} if persistent else {}
    data = Items()
    expected = epochs(made(data, workers, drop_last=last, **more))
    loader = made(data, workers, drop_last=last, **more)
    first, second = pool(loader), pool(loader, 1)
    whole = Whole(Plan(TensorDataset(data.x), torch.utils.data.default_collate))
    whole.plan.whole, whole.plan.reason = lambda indices: [data.x[indices] * 2, torch.tensor(indices)], None
    plan = {3: first, 9: None, 12: whole, 17: first, 31: second, 40: first, 45: None, 46: whole, 47: None, 60: second, 61: first}
    switching = Switching(loader, plan)
    try:
        found = epochs(loader, switching.switch, after=switching.after)
    finally:
        first.kill()
        second.kill()
    assert first.failed is second.failed is None
    assert len(found) == len(expected) and all(map(same, found, expected))


def test_an_epoch_that_is_left_early_costs_no_sample_of_the_next():
    def some(loader, after=None, switch=None):
        torch.manual_seed(3)
        found = []
        for epoch in range(4):
            iterator = iter(loader)
            if after is not None:
                after(loader, iterator)
            for number, batch in enumerate(iterator):
                found.append(batch)
                if epoch == 0 and number == 1 and switch is not None:
                    switch(2, iterator)
                if number == 4 + epoch:
                    break
            del iterator
        return found

    expected = some(made(Items()))
    loader = made(Items())
    source = pool(loader)
    switching = Switching(loader, {2: source})
    found = some(loader, switching.after, switching.switch)
    source.kill()
    assert len(found) == len(expected) and all(map(same, found, expected)) and source.failed is None


def test_a_loader_for_every_epoch(monkeypatch):
    """Made in the loop's own line; the data is the same."""
    from _flatout_apply import control

    monkeypatch.setattr(control.watched, "info_of", lambda loader: Loader(0, 0, True, False))

    def some(data, switching=None):
        torch.manual_seed(2)
        found = []
        for epoch in range(3):
            loader = made(data)
            iterator = iter(loader)
            if switching is not None:
                iterator._flatout_loader = loader
                switching.after(loader, iterator)
                if epoch == 0:
                    switching.control.loader = lambda: None
                    switching.control.shape = switching.control.shape_of(loader)
                    switching.control.adopt(loader)
            for number, batch in enumerate(iterator):
                found.append(batch)
                if switching is not None and epoch == 0:
                    switching.switch(number + 1, iterator)
            del loader, iterator
            if switching is not None:
                switching.latest.clear()
        return found

    data = Items()
    expected = some(data)
    source = pool(made(data))
    switching = Switching(made(data), {2: source})
    taken = []
    take, source.take = source.take, lambda feed: taken.append(1) or take(feed)
    found = some(data, switching)
    source.kill()
    assert len(found) == len(expected) and all(map(same, found, expected))
    # The later epochs came from the same workers.
    assert len(taken) > 2 * ROWS // BATCH


def test_two_iterators_at_once():
    torch.manual_seed(1)
    expected = list(zip(*(list(made(Items())) for _ in range(2))))
    torch.manual_seed(1)
    loader = made(Items())
    source = pool(loader)
    switching = Switching(loader, {})
    one = iter(loader)
    switching.after(loader, one)
    switching.control.use(source)
    first = [next(one), next(one)]
    other = iter(loader)
    switching.after(loader, other)
    second = [next(other), next(other)]
    first += list(one)
    second += list(other)
    source.kill()
    assert all(map(same, first, [pair[0] for pair in expected])) and all(map(same, second, [pair[1] for pair in expected]))


@pytest.mark.parametrize("kind, reason", [(Drawing, "draws-random"), (Dying, "workers-die")])
def test_a_pool_that_fails_loses_nothing(kind, reason):
    expected = epochs(made(kind()))
    loader = made(kind())
    source = pool(loader)
    switching = Switching(loader, {2: source})
    found = epochs(loader, switching.switch, after=switching.after)
    source.kill()
    assert source.failed == reason
    assert len(found) == len(expected) and all(map(same, found, expected))


def test_a_worker_that_hangs_is_given_up(monkeypatch):
    import time

    monkeypatch.setattr(pools, "PATIENCE_S", 1.0)

    class Hanging(Items):
        def __getitem__(self, index):
            if index == 99 and os.getpid() != PID:
                time.sleep(600)
            return self.x[index]

    expected = epochs(made(Hanging()), count=1)
    loader = made(Hanging())
    source = pool(loader)
    switching = Switching(loader, {2: source})
    found = epochs(loader, switching.switch, count=1, after=switching.after)
    assert source.failed == "workers-hang" and all(map(same, found, expected))


def test_workers_that_never_answer_are_given_up_sooner(monkeypatch):
    import time

    monkeypatch.setattr(pools, "PATIENCE_FIRST_S", 1.0)

    class Stuck(Items):
        def __getitem__(self, index):
            if os.getpid() != PID:
                time.sleep(600)
            return self.x[index]

    expected = epochs(made(Stuck()), count=1)
    loader = made(Stuck())
    source = pool(loader)
    switching, begun = Switching(loader, {2: source}), time.monotonic()
    found = epochs(loader, switching.switch, count=1, after=switching.after)
    assert source.failed == "workers-hang" and all(map(same, found, expected))
    assert time.monotonic() - begun < pools.PATIENCE_S


def test_batches_are_fetched_here_while_workers_start():
    data = Items()
    expected = epochs(made(data))
    loader = made(data)
    # More than an epoch has.
    for head in (1, 5, 28, 29, 64):
        source = Pool(loader, Loader(0, 0, True, False), 2, 2, False, False, 0.0, head)
        switching = Switching(loader, {3: source, 40: None, 50: source})
        try:
            found = epochs(loader, switching.switch, after=switching.after)
        finally:
            source.kill()
        assert source.failed is None and len(found) == len(expected) and all(map(same, found, expected)), head


def test_a_queue_becomes_longer_and_shorter():
    data = Items()
    expected = epochs(made(data))
    loader = made(data)
    source = pool(loader)
    outstanding = []

    def switch(number, iterator):
        switching.switch(number, iterator)
        if number in (10, 30):
            factor = 4 if number == 10 else 2
            source.iterator._prefetch_factor = max(source.iterator._prefetch_factor, factor)
            source.depth = source.workers * factor
        outstanding.append(source.iterator._send_idx - source.iterator._rcvd_idx)

    switching = Switching(loader, {3: source})
    try:
        found = epochs(loader, switch, after=switching.after)
    finally:
        source.kill()
    assert len(found) == len(expected) and all(map(same, found, expected))
    assert max(outstanding[:9]) <= 4 and max(outstanding[10:25]) > 4 and max(outstanding[40:]) <= 4


@pytest.mark.parametrize("workers", [0, 2])
def test_larger_batches_have_every_sample_once_and_in_order(workers):
    data = Items()

    def samples(found):
        return torch.cat([batch[1] for batch in found[::2]]).tolist()

    # One epoch: the next is shuffled by a number that the steps of the first have drawn before.
    expected = samples(epochs(made(data, workers), count=1))
    loader = made(data, workers)
    source, own = pool(loader), Own()
    switching = Switching(loader, {})

    def switch(number, iterator):
        plan = {2: (2, source), 6: (1, source), 9: (1, None), 11: (2, source if workers else own), 13: (4, source if workers else own), 15: (1, None)}
        if number in plan:
            switching.control.merged, following = plan[number]
            switching.control.use(following)

    try:
        found = epochs(loader, switch, count=1, after=switching.after)
    finally:
        source.kill()
    sizes = {len(batch[1]) for batch in found[::2]}
    assert source.failed is None and samples(found) == expected and {8, 16} <= sizes


def test_errors_are_the_programs_own():
    loader = made(Failing())
    source = pool(loader)
    switching = Switching(loader, {2: source})
    with pytest.raises(KeyError) as caught:
        epochs(loader, switching.switch, after=switching.after)
    source.kill()
    # Not "Caught KeyError in DataLoader worker process".
    assert caught.value.args == ("row 99",)


def test_making_workers_leaves_signals_and_random_numbers_alone():
    before, state = signal.getsignal(signal.SIGCHLD), randomness.state()
    source = pool(made(Items()))
    assert signal.getsignal(signal.SIGCHLD) == before and randomness.state() == state
    source.kill()


FILE = open(__file__)
COUNT = 0


class Opened(Items):
    def __init__(self):
        super().__init__()
        self.file = open(__file__)


class GlobalFile(Items):
    def __getitem__(self, index):
        FILE.seek(index)
        return FILE.read(1)


class Generating(Items):
    def __init__(self):
        super().__init__()
        self.inner = {"made": [torch.Generator()]}


class Counting(Items):
    def __getitem__(self, index):
        return self.counted(index)

    def counted(self, index):
        self.seen = index
        return index


class Global(Items):
    def __getitem__(self, index):
        global COUNT
        COUNT += 1
        return COUNT


class Asking(Items):
    def __getitem__(self, index):
        return torch.utils.data.get_worker_info() is None


class Locked(Items):
    def __init__(self):
        super().__init__()
        import threading

        self.lock = threading.Lock()


class Connected(Items):
    def __init__(self):
        super().__init__()
        self.db = sqlite3.connect(":memory:")


class Transformed(Items):
    def __init__(self, transform):
        super().__init__()
        self.transform = transform


HAZARDS = {Opened: "open-file", Connected: "open-file", GlobalFile: "open-file", Generating: "own-generator", Counting: "changes-itself", Global: "changes-itself", Asking: "asks-for-worker", Locked: "unknown-kind"}


@pytest.mark.parametrize("kind", HAZARDS)
def test_what_cannot_go_to_workers(kind):
    assert walk.hazard(kind()) == HAZARDS[kind]
    assert walk.hazard(TensorDataset(torch.ones(2)), [kind()]) == HAZARDS[kind]


def test_closures_are_looked_into():
    made = torch.Generator()
    assert walk.hazard(Transformed(lambda x: x + torch.rand(1, generator=made))) == "own-generator"
    assert walk.hazard(Transformed(lambda x: x + 1)) is None


@pytest.mark.parametrize("data", [Items(), TensorDataset(torch.ones(3)), Transformed(torch.nn.Linear(2, 2)), [1, "a", {"b": (None, 2.5)}]])
def test_what_can(data):
    assert walk.hazard(data, torch.utils.data.default_collate) is None


def test_samplers():
    class Own(torch.utils.data.Sampler):
        def __iter__(self):
            return iter(range(3))

    assert knows_sampler(made(Items())) and not knows_sampler(DataLoader(Items(), sampler=Own()))
    drawing = torch.utils.data.RandomSampler(Items(), replacement=True, generator=torch.Generator())
    assert not knows_sampler(DataLoader(Items(), sampler=drawing))
    assert knows_sampler(DataLoader(Items(), sampler=torch.utils.data.SubsetRandomSampler([1, 2])))


def test_random_numbers_of_the_data_are_seen():
    before, loader = torch.utils.data._utils.fetch._MapDatasetFetcher.fetch, made(Drawing())
    observe.install()
    observe.worker._worker_of = 5
    try:
        list(made(Items()))
        assert not observe.saw(4, observe.DRAWS)
        list(loader)
        assert observe.saw(4, observe.DRAWS) and not observe.saw(3, observe.DRAWS)
    finally:
        observe.worker._worker_of = None
        observe.done()
    assert torch.utils.data._utils.fetch._MapDatasetFetcher.fetch is before


def cut(batch):
    return [batch[0][:, :2].contiguous(), batch[1]]


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
def test_batches_are_changed_as_they_come_whoever_made_them(workers, persistent):
    more = {"persistent_workers": True} if persistent else {}
    expected = epochs(made(Items(), workers, **more))
    loader = made(Items(), workers, **more)
    source = pool(loader)
    switching = Switching(loader, {20: source, 40: None})

    def switch(number, iterator):
        switching.switch(number, iterator)
        if number in (3, 50):
            switching.control.follow(cut if number == 3 else None)

    try:
        found = epochs(loader, switch, after=switching.after)
    finally:
        source.kill()
    for number in range(len(expected) // 2):
        whole, drawn = expected[2 * number : 2 * number + 2]
        wanted = cut(whole) if 3 <= number < 50 else whole
        assert same(found[2 * number], wanted) and same(found[2 * number + 1], drawn), number
    assert source.failed is None and len(found) == len(expected)
