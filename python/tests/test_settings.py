"""Settings that change how batches look or where they are made: `padding.trim`, `loader.resident`, `loader.threads`, `step.graph`."""

import json
import subprocess
import sys
import time

import pytest

from conftest import FLATOUT, environment, flatout, need

torch = need("torch")

from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate  # noqa: E402

from _flatout_apply import padding, threads  # noqa: E402
from _flatout_apply.changes.shapes import Shapes  # noqa: E402
from _flatout_apply.feed import Feed  # noqa: E402
from _flatout_apply.resident import Resident  # noqa: E402
from _flatout_apply.same import same  # noqa: E402


def batch_of(lengths, width=64, left=False, labels=None):
    mask = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, length in zip(mask, lengths):
        row[width - length if left else 0 : width if left else length] = 1
    found = {"input_ids": torch.arange(mask.numel()).reshape(mask.shape) * mask, "attention_mask": mask, "other": torch.ones(len(lengths))}
    if labels is not None:
        found["labels"] = found["input_ids"].masked_fill(mask == 0, labels)
    return found


def trimmed(batch):
    told = []
    return padding.Trimmed(lambda rows: rows, told.append)(dict(batch)), told


@pytest.mark.parametrize("lengths, width", [([3, 17, 9], 24), ([1], 8), ([64, 2], 64), ([8, 8], 8)])
def test_batches_are_cut_to_their_longest_row(lengths, width):
    whole = batch_of(lengths, labels=-100)
    found, told = trimmed(whole)
    assert told == [None] and list(found) == list(whole)
    for name in ("input_ids", "attention_mask", "labels"):
        assert same(found[name], whole[name][:, :width].contiguous())
    assert found["other"] is whole["other"]


def test_losses_of_cut_batches_are_equal():
    torch.manual_seed(0)
    whole = batch_of([5, 11], labels=-100)
    found, _ = trimmed(whole)
    embedding, head = torch.nn.Embedding(200, 8), torch.nn.Linear(8, 200)

    def loss(batch):
        scores = head(embedding(batch["input_ids"].remainder(200)))
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten().remainder(200).where(batch["labels"].flatten() >= 0, -100))

    assert torch.allclose(loss(found), loss(whole), rtol=1e-6)


def test_batches_that_cannot_be_cut_stay():
    for whole, reason in (
        (batch_of([5, 11], labels=0), "labels-in-padding"),
        (batch_of([5, 11], left=True), "left-padding"),
        ({"x": torch.ones(2)}, "no-mask"),
    ):
        found, told = trimmed(whole)
        assert told == [reason] and same(found, whole)
    positioned = dict(batch_of([5, 11], left=True), position_ids=torch.arange(128).reshape(2, 64))
    found, told = trimmed(positioned)
    assert told == [None] and same(found["position_ids"], positioned["position_ids"][:, 48:].contiguous())
    assert trimmed([torch.ones(2)])[1] == ["no-mask"]


class Columns(Dataset):
    def __init__(self):
        import numpy

        self.x, self.y = numpy.arange(300.0, dtype=numpy.float32).reshape(100, 3), torch.arange(100)

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return {"x": torch.from_numpy(self.x[index]) / 3, "y": self.y[index]}


class Tensors(Columns):
    def __getitem__(self, index):
        return self.y[index].float(), torch.as_tensor(self.x[index])


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("data", [TensorDataset(torch.rand(100, 4), torch.arange(100)), Subset(TensorDataset(torch.rand(100, 2)), range(7, 90)), Tensors()], ids=["tensors", "subset", "own"])
def test_resident_batches_are_equal(data, device):
    plan = Resident(torch, data, default_collate, torch.device(device), 1 << 30)
    assert plan.reason is None and plan.copies
    own = lambda indices: default_collate([data[index] for index in indices])
    for indices in ([5, 1, 5], [0], list(range(50)), [80]):
        found = plan.fetch(indices, own)
        assert all(one.device.type == device for one in found)
        assert all(same(one.cpu(), other) for one, other in zip(found, own(indices)))


def test_resident_data_must_fit_and_be_plain():
    data = TensorDataset(torch.rand(1000, 4))
    cpu = torch.device("cpu")
    assert Resident(torch, data, default_collate, cpu, 20_000).reason == "does-not-fit"
    assert Resident(torch, data, lambda rows: rows, cpu, 1 << 30).reason == "own-collate"


def test_resident_copies_are_what_is_read():
    """Batches come from the copies, not from the data set's own columns."""
    data = TensorDataset(torch.rand(100, 4))
    plan = Resident(torch, data, default_collate, torch.device("cpu"), 1 << 30)
    (column,) = data.tensors
    plan.copies = {id(column): (column, column + 1)}
    assert torch.equal(plan.whole([3])[0], column[[3]] + 1)


class Waiting(Dataset):
    def __init__(self, seconds):
        self.seconds, self.x = seconds, torch.rand(400, 3)

    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return self.x[index], index


class Busy(Waiting):
    """Holds the GIL: threads only stand in each other's way."""

    def __getitem__(self, index):
        for _ in range(3000):
            pass
        return self.x[index], index


class Random(Waiting):
    def __getitem__(self, index):
        return self.x[index] + torch.rand(3), index


@pytest.mark.parametrize("data", [Waiting(0.001), Busy(0), Random(0)], ids=["waiting", "busy", "random"])
def test_threads_give_the_same_batches(data):
    def epochs(source):
        torch.manual_seed(0)
        loader, found = DataLoader(data, 8, shuffle=True), []
        for _ in range(2):
            iterator = iter(loader)
            if source is not None:
                source = source if isinstance(source, threads.Threads) else threads.Threads(loader, 3, told.append)
                if source.reason is None:
                    Feed(iterator).put(source)
            found += list(iterator) + [torch.rand(1)]
        return found

    told = []
    expected, found = epochs(None), epochs(True)
    assert len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(data, Random):
        assert told == ["draws-random"]


@pytest.mark.parametrize("own, ours, reason", [(10, 4, None), (10, 9.8, "no-gain"), (10, 30, "no-gain")])
def test_threads_stay_where_they_help(monkeypatch, own, ours, reason):
    """By the time from one batch to the next, without threads and with them."""
    told, now = [], [0.0]
    monkeypatch.setattr(threads, "perf_counter_ns", lambda: now[0])
    source = threads.Threads(DataLoader(Waiting(0), 8, shuffle=True), 2, told.append)
    iterator = iter(DataLoader(Waiting(0), 8, shuffle=True))
    Feed(iterator).put(source)
    for number in range(40):
        now[0] += own if number < threads.OWN else ours
        next(iterator)
    source.end()
    assert told == [reason]


def test_shapes():
    shapes = Shapes()
    from _flatout_probe import raw

    raw.learn(torch)
    for _ in range(16):
        shapes.batch_came([torch.ones(4, 3), torch.ones(4)])
    assert shapes.fixed()
    shapes.batch_came([torch.ones(2, 3), torch.ones(2)])
    assert shapes.fixed()
    shapes.batch_came([torch.ones(4, 5), torch.ones(4)])
    assert not shapes.fixed()


PROGRAM = """
import torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 160
    def __getitem__(self, index):
        mask = torch.zeros(32, dtype=torch.int64); mask[: index % 7 + 1] = 1
        return {"input_ids": mask * index, "attention_mask": mask, "labels": torch.where(mask > 0, index, -100)}
torch.manual_seed(0)
model = torch.nn.Embedding(200, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(Rows(), 8, shuffle=True):
    kept = batch["labels"] >= 0
    loss = (model(batch["input_ids"])[kept].squeeze() - batch["labels"][kept]).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item().hex(), batch["input_ids"].shape[1])
"""


def test_padding_is_trimmed_in_a_program(tmp_path):
    flatout()
    (tmp_path / "train.py").write_text(PROGRAM)
    alone = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True)
    options = ["--apply", "padding.trim=on,loader.threads=2,step.graph=on,loader.resident=on"]
    done = subprocess.run([str(FLATOUT), "run", *options, "--", sys.executable, "train.py"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True)
    losses = [[line.split()[0] for line in out.splitlines()] for out in (alone.stdout, done.stdout)]
    assert losses[0] == losses[1] and len(losses[0]) == 20
    assert {line.split()[1] for line in done.stdout.splitlines()} == {"8"} and "32" in alone.stdout
    assert "padding.trim=on was not applied" not in done.stderr
    for setting, reason in {"step.graph=on": "CUDA graphs need a GPU", "loader.resident=on": "the program does not use a GPU"}.items():
        assert f"{setting} was not applied: {reason}" in done.stderr, done.stderr
    (record,) = (tmp_path / "home/runs").iterdir()
    facts = [json.loads(line) for line in (record / "facts.jsonl").read_text().splitlines()]
    assert [fact["value"] for fact in facts if fact["key"] == "apply.padding.trim"] == [True]
