"""Batches of a trial: the program's own, a part of them, several times as much, one again and again, or another loader's."""

import torch

from _flatout_probe import extension, guard
from _flatout_probe.patches import loader as watched
from _flatout_probe.raw import batch_size


def install():
    from torch.utils.data import dataloader

    if watched.woven_next is not None:
        _wrap_next(dataloader._BaseDataLoaderIter, watched.woven_next)


def _wrap_next(cls, woven):
    """A trial gives other batches than the program's own now and then."""
    original, own = cls.__next__, woven.raw

    @guard.like(original)
    def __next__(self):
        if guard.off or (extension.held is None and extension.fed is None and not extension.first_samples and extension.repeated == 1):
            return original(self)
        woven.enter(self)
        try:
            if watched._asked is None or watched._asked[0] != id(self) or watched._asked[3]:
                batch = own(self)
            else:
                batch = resized(instead(own, self, watched._asked[1]))
        except BaseException:
            woven.fail(self)
            raise
        return woven.leave(self, batch)

    cls.__next__ = __next__


def take_part(samples):
    """From now on training batches have their first samples only, and only those are made. Nothing is patched until it is asked for."""
    from torch import is_grad_enabled
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    extension.first_samples = samples
    original = getattr(_BaseDataLoaderIter, "_next_index", None)
    if original is None:
        return

    @guard.like(original)
    def _next_index(self):
        index = original(self)
        return index[:extension.first_samples] if extension.first_samples and type(index) is list and is_grad_enabled() else index

    _BaseDataLoaderIter._next_index = _next_index


def instead(original, iterator, state):
    if extension.fed is not None and state is not None and state[0] is extension.fed[0]:
        try:
            return original(extension.fed[1])
        except Exception:
            extension.fed = None
    return original(iterator) if extension.held is None else hold(original, iterator, state)


def hold(original, iterator, state):
    number = state[0].number if state is not None else None
    if number not in extension.held:
        extension.held[number] = original(iterator)
    return extension.held[number]


def resized(batch):
    """A part of the batch, or all of it several times. A batch of a kind that cannot be divided stays as it is from then on."""
    try:
        if extension.first_samples:
            return with_each(batch, batch_size(batch), lambda value: value[:extension.first_samples])
        return with_each(batch, batch_size(batch), several)
    except Exception:
        extension.first_samples, extension.repeated = 0, 1
        return batch


def several(value):
    if isinstance(value, (list, tuple)):
        return value * extension.repeated
    if isinstance(value, torch.Tensor):
        return value.repeat(extension.repeated, *[1] * (value.dim() - 1))
    import numpy

    return numpy.concatenate([value] * extension.repeated)


def with_each(value, whole, change):
    """The same with a change to everything in it that has as many samples as the batch."""
    if hasattr(value, "shape"):
        return change(value) if len(value.shape) and value.shape[0] == whole else value
    if type(value) in (list, tuple) and len(value) == whole and all(isinstance(item, (str, bytes, int, float)) for item in value):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(with_each(item, whole, change) for item in value))
    if type(value) in (list, tuple):
        return type(value)(with_each(item, whole, change) for item in value)
    if type(value) is dict:
        return {key: with_each(item, whole, change) for key, item in value.items()}
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    raise TypeError(type(value).__name__)
