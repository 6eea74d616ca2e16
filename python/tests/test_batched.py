"""`loader.batched`: whole batches are equal to the program's own, bit by bit, or are not used."""

import collections
import json
import subprocess
import sys

import pytest

from conftest import FLATOUT, environment, flatout, need

torch = need("torch")
numpy = need("numpy")

from torch.utils.data import Dataset, Subset, TensorDataset, default_collate, random_split  # noqa: E402

from _flatout_apply.batched import Plan  # noqa: E402
from _flatout_apply.same import same  # noqa: E402

ROWS = 100
Pair = collections.namedtuple("Pair", "x y")


class Columns(Dataset):
    def __init__(self):
        made = numpy.random.default_rng(0)
        self.x = made.random((ROWS, 5), dtype=numpy.float32)
        self.y = made.integers(0, 9, ROWS)
        self.listed, self.names = list(range(ROWS)), [f"row {at}" for at in range(ROWS)]
        self.rows = [torch.full((2, 3), float(at)) for at in range(ROWS)]
        self.tensor, self.transform, self.scale = torch.arange(ROWS * 4.0).reshape(ROWS, 2, 2), None, 255.0

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Converted(Columns):
    def __getitem__(self, index):
        """A sample."""
        x = torch.from_numpy(self.x[index]) / self.scale - 0.5
        if self.transform is not None:
            x = self.transform(x)
        label = int(self.y[index])
        return {"x": x, "label": label, "float": float(self.y[index]), "listed": self.listed[index], "name": self.names[index], "one": 1}


class Tensors(Columns):
    def __getitem__(self, at):
        return self.tensor[at].double(), torch.tensor(self.y[at], dtype=torch.float32), self.rows[at], (self.tensor[at], self.y[at].astype(numpy.int32))


class ScalarTensors(Columns):
    def __getitem__(self, at):
        return torch.tensor(self.listed[at]), torch.as_tensor(self.x[at], dtype=torch.float64), self.y[at].item()


class Nested(Columns):
    def __init__(self):
        super().__init__()
        self.inner = {"x": torch.rand(ROWS, 2)}

    def __getitem__(self, index):
        x = self.inner["x"][index]
        return [x, x * 2]


PLAIN = [
    Columns(),
    Converted(),
    Tensors(),
    ScalarTensors(),
    Nested(),
    TensorDataset(torch.rand(ROWS, 3), torch.arange(ROWS), torch.rand(ROWS).to(torch.bfloat16)),
    Subset(Converted(), [7, 3, 7, *range(50, 90)]),
    Subset(Subset(Columns(), range(20, 80)), list(range(0, 60, 2))),
    random_split(TensorDataset(torch.rand(ROWS, 3)), [60, 40], torch.Generator().manual_seed(0))[1],
    torch.rand(ROWS, 3),
    numpy.arange(ROWS * 2.0).reshape(ROWS, 2),
]


@pytest.mark.parametrize("data", PLAIN, ids=lambda data: type(data).__name__)
def test_whole_batches_are_equal(data):
    plan = Plan(data, default_collate)
    assert plan.reason is None
    for indices in ([0], [3, 1, 2, 1], list(range(len(data)))):
        assert same(plan.whole(indices), default_collate([data[index] for index in indices]))


@pytest.mark.parametrize("kind", [None, "torch", "numpy"])
def test_hugging_face_batches_are_equal(kind):
    datasets = need("datasets")
    rows = {"x": [[float(at), 1.0] for at in range(ROWS)], "y": list(range(ROWS)), "name": [f"row {at}" for at in range(ROWS)]}
    data = datasets.Dataset.from_dict(rows).with_format(kind)
    plan = Plan(data, default_collate)
    assert plan.reason is None
    for indices in ([0], [3, 1, 2, 1], list(range(ROWS))):
        assert same(plan.whole(indices), default_collate([data[index] for index in indices]))


def test_hugging_face_transforms_are_left_alone():
    datasets = need("datasets")
    data = datasets.Dataset.from_dict({"x": [1, 2, 3]}).with_transform(lambda rows: {"x": [value * 2 for value in rows["x"]]})
    assert Plan(data, default_collate).reason == "data-set-format"


class LooksAtSamples(Columns):
    def __getitem__(self, index):
        x = self.x[index]
        if numpy.isnan(x).any():
            x = x * 0
        return x


class LooksAtValues(Columns):
    def __getitem__(self, index):
        x = self.x[index]
        if self.y[index] == 3:
            x = x * 2
        return x


class LooksAtTheIndex(Columns):
    def __getitem__(self, index):
        return self.x[index] if index == 17 else self.x[0]


class Draws(Columns):
    def __getitem__(self, index):
        return self.x[index] + torch.rand(5).numpy()


class Averages(Columns):
    def __getitem__(self, index):
        return self.x[index].mean()


class Counts(Columns):
    count = 0

    def __getitem__(self, index):
        self.count = index
        return self.x[index]


class Scales(Columns):
    """By another row: the rows would be spread over each other."""

    def __getitem__(self, index):
        return torch.from_numpy(self.x[index]) * self.tensor[index]


class Transforms(Columns):
    def __init__(self):
        super().__init__()
        self.transform = lambda x: x * 2

    __getitem__ = Converted.__getitem__


class ThroughProperty(Columns):
    @property
    def hidden(self):
        return self.x

    def __getitem__(self, index):
        return self.hidden[index]


class Shuffles(Columns):
    def __getitem__(self, index):
        return self.x[(index * 7) % ROWS]


class Ragged(Columns):
    def __init__(self):
        super().__init__()
        self.rows = [torch.ones(at) for at in range(ROWS)]

    def __getitem__(self, index):
        return self.rows[index]


class Gradients(Columns):
    def __init__(self):
        super().__init__()
        self.tensor = torch.rand(ROWS, 3, requires_grad=True)

    def __getitem__(self, index):
        return self.tensor[index]


OTHERS = [LooksAtSamples, LooksAtValues, LooksAtTheIndex, Draws, Averages, Counts, Scales, Transforms, ThroughProperty, Shuffles, Ragged, Gradients]


@pytest.mark.parametrize("kind", OTHERS)
def test_other_items_are_left_alone(kind):
    assert Plan(kind(), default_collate).reason


def test_own_collate_is_left_alone():
    assert Plan(PLAIN[0], lambda rows: rows).reason == "own-collate"


def test_a_later_error_is_the_programs_own():
    data = TensorDataset(torch.rand(ROWS, 3))
    plan = Plan(data, default_collate)
    own = lambda indices: default_collate([data[index] for index in indices])
    for indices in ([1, 2], [3, 4], [5, 6]):
        assert same(plan.fetch(indices, own), own(indices))
    with pytest.raises(IndexError):
        plan.fetch([ROWS], own)
    assert same(plan.fetch([-1], own), own([-1]))


@pytest.mark.parametrize("one, other", [([1], (1,)), (torch.ones(2), torch.ones(2, dtype=torch.float64)), (torch.ones(2, 2), torch.ones(2, 2).t()[:, :1]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (torch.tensor([0.0]), torch.tensor([-0.0]))])
def test_differences_are_seen(one, other):
    assert not same(one, other) and same(one, one)
    assert same(torch.tensor([float("nan")]), torch.tensor([float("nan")]))


def test_strides_count():
    assert not same(torch.ones(3, 3), torch.ones(3, 3).t())


PROGRAM = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.rand(600, 4), torch.rand(600, 1))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(2):
    for x, y in loader:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), x.sum().item().hex())
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_losses_are_bitwise_equal(tmp_path, workers):
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "train.py", str(workers)]
    flatout()
    found = []
    for before in ([], [str(FLATOUT), "run", "--apply", "loader.batched=on", "--"]):
        found.append(subprocess.run([*before, *command], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True))
    assert found[0].stdout == found[1].stdout and len(found[0].stdout.splitlines()) == 38
    if not workers:
        assert "not applied" not in found[1].stderr
        (record,) = (tmp_path / "home/runs").iterdir()
        facts = [json.loads(line) for line in (record / "facts.jsonl").read_text().splitlines()]
        assert [fact["value"] for fact in facts if fact["key"] == "apply.loader.batched"] == [True]
