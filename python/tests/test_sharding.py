"""What the probe learns of a data set's workers from its code: whether they share the samples, and whether they could begin without a fork."""

import functools
import subprocess
import sys

import pytest

from conftest import need

torch = need("torch")

from torch.utils.data import ChainDataset, DataLoader, Dataset, IterableDataset, get_worker_info  # noqa: E402

from _flatout_apply import apply, settings  # noqa: E402
from _flatout_probe import raw, sharding, spawning  # noqa: E402

raw.learn(torch)


class Plain(IterableDataset):
    def __iter__(self):
        yield from range(10)


class Sharded(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from range(info.id if info else 0, 10)


class Elsewhere(IterableDataset):
    def __iter__(self):
        yield from part(range(10))


def part(rows):
    info = get_worker_info()
    return rows[info.id :] if info else rows


class Holding(IterableDataset):
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        yield from self.inner


def begun(worker, step=1):
    info = get_worker_info()
    info.dataset.start = info.id * step


@pytest.mark.parametrize(
    "things, shared",
    [
        ((Plain(),), False),
        ((Sharded(),), True),
        ((Elsewhere(),), True),
        ((Holding(Plain()),), False),
        ((Holding(Sharded()),), True),
        ((ChainDataset([Plain(), Sharded()]),), True),
        ((ChainDataset([Plain()]),), False),
        ((Plain(), begun), True),
        ((Plain(), functools.partial(begun, step=2)), True),
        ((Plain(), None), False),
        ((Holding(list(range(100_000))),), False),
        ((Holding([Holding(number) for number in range(100)] * 30),), False),
    ],
)
def test_sharing_is_seen_in_the_code(things, shared):
    assert sharding.is_shared(*things) is shared


def test_data_sets_of_hugging_face_share():
    datasets = need("datasets")
    made = datasets.IterableDataset.from_generator(lambda: iter([{"x": 1}]))
    assert sharding.is_shared(made) is True


def test_data_pipes_that_are_split_share():
    pipes = torch.utils.data.datapipes.iter
    assert sharding.is_shared(pipes.IterableWrapper(range(4)).sharding_filter()) is True
    assert sharding.is_shared(pipes.IterableWrapper(range(4))) is False


@pytest.fixture
def asked(monkeypatch):
    told = []
    monkeypatch.setattr(apply, "_torch", torch)
    monkeypatch.setattr(apply, "told", lambda key, reason=None: told.append((key, reason)))

    def ask(dataset, workers, **given):
        told.clear()
        monkeypatch.setattr(settings, "values", {"loader.num_workers": workers, "loader.persistent_workers": True})
        monkeypatch.setattr(apply, "values", settings.values)
        loader = object.__new__(DataLoader)
        return apply.loader_arguments(DataLoader.__init__, loader, (dataset,), given)[1], list(told)

    return ask


def arguments(found):
    return {name: found.get(name) for name in ("num_workers", "persistent_workers")}


def test_no_setting_makes_samples_come_once_per_worker(asked):
    refused = ("loader.num_workers", "every-worker-reads-all")
    found, told = asked(Plain(), 4)
    assert not found.get("num_workers") and refused in told and ("loader.persistent_workers", "needs-workers") in told
    found, told = asked(Plain(), 4, num_workers=1)
    assert arguments(found) == {"num_workers": 1, "persistent_workers": True} and refused in told
    for dataset, workers in ((Plain(), 1), (Sharded(), 4), (torch.arange(4), 4)):
        found, told = asked(dataset, workers)
        assert arguments(found) == {"num_workers": workers, "persistent_workers": True} and refused not in told


class Rows(Dataset):
    def __init__(self, transform=None):
        self.transform = transform


def test_lambdas_and_local_classes_cannot_be_pickled():
    class Local(Dataset):
        pass

    assert not spawning.is_local(Rows()) and not spawning.is_local(Rows([begun, functools.partial(begun, step=2)]))
    assert spawning.is_local(Rows(lambda row: row)) and spawning.is_local(Rows([lambda row: row])) and spawning.is_local(Local())


@pytest.mark.parametrize("guard, guarded", [("if __name__ == '__main__':", True), ("if True:", False)])
def test_the_guard_of_the_main_module_is_seen(tmp_path, guard, guarded):
    program = tmp_path / "program.py"
    python = str(spawning.__file__.rsplit("/", 2)[0])
    program.write_text(f"import sys\nsys.path.insert(0, {python!r})\nfrom _flatout_probe import spawning\n{guard}\n    print(spawning.is_guarded())\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{guarded}\n", done.stderr
