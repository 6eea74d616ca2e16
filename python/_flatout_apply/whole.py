"""Data sets whose batches can be fetched as a whole: one indexing per column instead of one call per sample.

A plan is made only where every step from the index to the collated batch is known: torch's `TensorDataset` and `Subset`, Hugging Face
data sets, arrays and tensors themselves, and classes whose `__getitem__` only indexes (`expression`). It must give what
`default_collate` makes of the single samples; `batched` compares both before a plan is used.
"""

import sys

import torch
from torch.utils.data import Subset, TensorDataset, default_collate

from . import expression


class NoPlan(Exception):
    """Why the data set cannot be fetched as a whole; the reason is a code that the record keeps."""


def plan_of(dataset):
    """A function from a list of indices to the collated batch. Raises `NoPlan`."""
    kind = type(dataset)
    # Some kinds of torch's offer `__getitems__`; only Hugging Face's and `Subset`'s are known to mean the same as item by item.
    if kind is TensorDataset:
        return tensors(dataset)
    if kind is Subset:
        return subset(dataset)
    if is_hugging_face(kind):
        return hugging_face(dataset)
    if is_column(dataset):
        return lambda indices: collated(expression.gather(dataset, Indices(indices)), len(indices))
    if isinstance(dataset, torch.utils.data.IterableDataset):
        raise NoPlan("iterable")
    return own_class(dataset)


class Indices:
    """A batch's indices in the forms that columns want, each made once."""

    __slots__ = ("listed", "_tensor", "_array")

    def __init__(self, listed):
        self.listed, self._tensor, self._array = listed, None, None

    def tensor(self, device):
        if self._tensor is None:
            self._tensor = torch.tensor(self.listed, dtype=torch.int64)
        return self._tensor if device.type == "cpu" else self._tensor.to(device)

    def array(self):
        if self._array is None:
            self._array = self.tensor(torch.device("cpu")).numpy()
        return self._array


def is_column(value):
    """A tensor or an array of a plain kind, whose first dimension is the samples."""
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.dim() > 0 and not value.requires_grad and value.layout == torch.strided
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap) and value.ndim > 0 and value.dtype.kind in "biufc"


def tensors(dataset):
    columns = dataset.tensors
    if not all(type(column) is torch.Tensor and is_column(column) for column in columns):
        raise NoPlan("tensor-kind")

    def fetch(indices):
        if dataset.tensors is not columns:
            raise NoPlan("columns-replaced")
        found = Indices(indices)
        return [expression.gather(column, found).value for column in columns]

    return fetch


def subset(dataset):
    inner, own = plan_of(dataset.dataset), dataset.indices
    return lambda indices: inner([int(own[index]) for index in indices])


def is_hugging_face(kind):
    return kind.__name__ == "Dataset" and kind.__module__ == "datasets.arrow_dataset"


def hugging_face(dataset):
    if dataset.format["type"] not in (None, "torch", "numpy", "python"):
        raise NoPlan("data-set-format")
    return lambda indices: {key: column_of(value, len(indices)) for key, value in dataset[list(map(int, indices))].items()}


def column_of(value, count):
    """A column as `default_collate` makes it of its single values; tensors that differ in shape come as a list."""
    if is_column(value) and len(value) == count:
        return torch.as_tensor(value).contiguous()
    return default_collate(list(value))


def own_class(dataset):
    """A class whose `__getitem__` only indexes what it has."""
    kind = type(dataset)
    if hasattr(dataset, "__getitems__"):
        raise NoPlan("own-getitems")
    if isinstance(dataset, torch.utils.data.Dataset) and kind.__module__.startswith("torch."):
        raise NoPlan("data-set-kind")
    try:
        method = expression.Method(kind.__getitem__)
    except expression.NotPlain as reason:
        raise NoPlan(str(reason)) from None

    def fetch(indices):
        return collated(method.run(dataset, Indices(indices)), len(indices))

    return fetch


def collated(value, count):
    """What `default_collate` makes of samples that look like this, each value of the batch at once."""
    if type(value) is expression.Batch:
        inner = value.value
        if type(inner) is list:
            return default_collate(inner)
        return inner if isinstance(inner, torch.Tensor) else torch.as_tensor(inner)
    if type(value) is dict:
        return {key: collated(one, count) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(collated(one, count) for one in value))
    if type(value) in (list, tuple):
        return [collated(one, count) for one in value]
    return default_collate([value] * count)
