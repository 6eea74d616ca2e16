"""DataLoader: its arguments, the wait for each batch, epochs, and iterators that are made anew."""

import weakref
from time import perf_counter_ns

from .. import clock, coast, guard, places, settings
from . import evaluation, worker
from ..ring import L_BATCHES, L_EVAL_BATCHES, L_EVAL_WAIT, L_NUMBER, L_WAIT, LOADER_SLOTS, LOADER_WORDS, W_BATCHES, W_LOADERS

_known = weakref.WeakKeyDictionary()
_count = 0
# The loader whose iterator is being made: forked workers inherit it, spawned ones read it from the environment.
starting = 0
_tensor = None
# Training batches are cut to their first samples, or repeated so many times; 0 and 1 leave them whole. Only a trial of
# `flatout tune` does so.
first_samples = 0
repeated = 1
# Each loader's batch that is given again and again, by the loader's number, so that its workers rest; None while nothing is held.
held = None
# A loader whose batches come from an iterator of our own instead: its entry and that iterator; None while each gives its own.
fed = None

# Of the batch that came last, when it was a usual one: its iterator's id and state, and its samples.
latest = None
# Loaders whose first batches came since the last step: a step makes them loaders that feed the training.
newly_fed = []


class Loader:
    __slots__ = ("number", "workers", "epoch", "told_batch", "feeds", "batches", "latest", "alike")

    def __init__(self, number, workers, batches, alike):
        self.number, self.workers, self.batches, self.alike = number, workers, batches, alike
        self.epoch, self.told_batch, self.feeds, self.latest = 0, False, False, None


def install(torch):
    from torch.utils.data import dataloader

    global _tensor
    _tensor = torch.Tensor
    _patch_init(dataloader.DataLoader)
    _patch_iter(dataloader.DataLoader)
    _patch_next(dataloader._BaseDataLoaderIter, torch)
    clock.enders.append(program_ended)


def _patch_init(cls):
    original = cls.__init__

    @guard.like(original)
    def __init__(self, *args, **kwargs):
        if not guard.off:
            args, kwargs = settings.loader_arguments(original, self, args, kwargs)
        original(self, *args, **kwargs)
        if not guard.off:
            describe(self)

    cls.__init__ = __init__


@guard.quietly
def describe(loader):
    global _count
    if loader in _known:
        return
    _known[loader] = Loader(_count, loader.num_workers, length(loader), alike(loader))
    scope, place = "loader.%d" % _count, places.user_place(2)
    _count += 1
    values = {
        "num_workers": loader.num_workers,
        "batch_size": loader.batch_size if loader.batch_size else getattr(loader.batch_sampler, "batch_size", None),
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "prefetch_factor": loader.prefetch_factor,
        "drop_last": bool(loader.drop_last),
        "shuffle": "Random" in type(loader.sampler).__name__ or getattr(loader.sampler, "shuffle", None) is True,
        "dataset": type(loader.dataset).__name__,
        "multiprocessing_context": start_method(loader.multiprocessing_context),
    }
    if type(loader.sampler).__name__ != "_InfiniteConstantSampler" and hasattr(loader.dataset, "__len__"):
        values["length"] = len(loader.dataset)
    for key, value in values.items():
        clock.fact("loader." + key, value, scope, place)
    clock.begin()


def start_method(context):
    """How workers begin, where that was said or is no fork. Asking for the program's own without `allow_none` would settle it."""
    if context is not None:
        return context.get_start_method()
    import multiprocessing

    default = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return default if default != "fork" else None


def length(loader):
    """Batches an epoch, where that is known."""
    try:
        return len(loader)
    except Exception:
        return None


def alike(loader):
    """Whether all batches but an epoch's last have the same number of samples."""
    from torch.utils.data import BatchSampler, IterableDataset, default_collate

    plain = type(loader.batch_sampler) is BatchSampler and loader.collate_fn is default_collate
    return plain and not isinstance(loader.dataset, IterableDataset)


def _patch_iter(cls):
    original = cls.__iter__

    @guard.like(original)
    def __iter__(self):
        if guard.off or coast.fetching or not clock.mine():
            return original(self)
        before = _before_iter(self)
        try:
            iterator = original(self)
        finally:
            _after_iter(before)
        if before is not None:
            try:
                iterator._flatout = before[0].latest = before
            except Exception:
                pass
        return iterator

    cls.__iter__ = __iter__


@guard.quietly
def _before_iter(loader):
    global starting
    # Workers that are forked now must time theirs.
    worker.time_one()
    info = _known.get(loader)
    if info is None:
        describe(loader)
        info = _known[loader]
    import torch

    evaluating = clock.base == clock.EVAL or not torch.is_grad_enabled()
    begin = clock.switch(clock.EVAL if evaluating else clock.DATA)
    starting = info.number + 1
    if info.workers:
        settings.tell_children(FLATOUT_LOADER=str(starting))
    if info.latest is not None:
        _epoch(info.latest)
    # The loader, when its iterator was begun, batches so far, when the last one came, whether its epoch was told.
    return [info, begin, 0, 0, False]


def _epoch(state):
    """An epoch ended: the loader was exhausted, or (Lightning) all its batches were taken and a new iterator is made."""
    info = state[0]
    if not state[4] and state[2] and state[2] == info.batches and info.feeds:
        state[4] = True
        info.epoch += 1
        clock.event("epoch", number=info.epoch, duration_ms=(state[3] - state[1]) / 1e6)


@guard.quietly
def _after_iter(before):
    global starting
    starting = 0
    settings.tell_children(FLATOUT_LOADER=None)
    clock.switch(clock.base)


def _patch_next(cls, torch):
    original = cls.__next__
    is_grad_enabled = torch.is_grad_enabled

    def slow(self):
        if guard.off or coast.fetching or clock.get_ident() != clock.thread:
            return original(self)
        state = getattr(self, "_flatout", None)
        evaluating = not is_grad_enabled() or clock.base == clock.EVAL
        if evaluation.pending is not None and not evaluating:
            evaluating = evaluation.asked(state)
        begin = 0
        try:
            begin = clock.switch(clock.EVAL if evaluating else clock.DATA)
            coast.fetching = True
        except Exception as error:
            guard.failed(error, "next")
        try:
            own = evaluating or (held is None and fed is None)
            batch = original(self) if own else instead(original, self, state)
        except BaseException as error:
            coast.fetching = False
            _ended(self, isinstance(error, StopIteration), evaluating)
            raise
        coast.fetching = False
        if (first_samples or repeated > 1) and not evaluating:
            batch = resized(batch)
        if not guard.off:
            try:
                if state is not None and state[2] and state[0].feeds and not evaluating and not evaluation.active:
                    _came_again(self, state, begin, batch)
                else:
                    _first_or_other(state, begin, batch, evaluating)
            except Exception as error:
                guard.failed(error, "next")
        return batch

    cls.__next__ = coast.patched_next(original, slow, _landed, _ended)


def _came_again(iterator, state, begin, batch):
    """The usual batch, of a loader known to feed the training."""
    global latest
    worker.time_one()
    samples = batch_size(batch)
    latest = id(iterator), state, samples
    took(state, begin, clock.batch_came(samples))
    settled_batch()


@guard.quietly
def _landed(now):
    """This batch ended a stretch of coasting: what is not done for each of them is done for it."""
    worker.time_one()
    for function in clock.after_some_batches:
        function(now)
    settled_batch()


def settled_batch():
    for function in settings.on_batch:
        function()
    if clock.since >= clock.next_flush:
        clock.flush(clock.since)


def may_coast(primary):
    """After a plain step: the loop may be written down only, if all that happens in it is known."""
    if settings.on_batch or first_samples or repeated > 1 or evaluation.active or evaluation.pending is not None:
        return
    if latest is None:
        if not clock.words[W_BATCHES]:
            coast.begin(primary, 0, None, 0, None, None)
        return
    iterator, state, samples = latest
    info = state[0]
    if not info.alike:
        coast.begin(primary, iterator, state, 0, None, batch_size)
    elif info.batches is not None:
        coast.begin(primary, iterator, state, samples, info.batches - 1 - state[2], None)


def _first_or_other(state, begin, batch, evaluating):
    global latest
    latest = None
    worker.time_one()
    if evaluating:
        _evaluated(state)
    else:
        _came(state, batch)
    if state is not None:
        took(state, begin, state[3], evaluating)


def take_part(samples):
    """From now on training batches have their first samples only, and only those are made. Nothing is patched until it is asked for."""
    global first_samples
    from torch import is_grad_enabled
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    first_samples = samples
    original = getattr(_BaseDataLoaderIter, "_next_index", None)
    if original is None:
        return

    @guard.like(original)
    def _next_index(self):
        index = original(self)
        return index[:first_samples] if first_samples and type(index) is list and is_grad_enabled() else index

    _BaseDataLoaderIter._next_index = _next_index


def took(state, begin, end, evaluating=False):
    """Which loader feeds the steps, and how long it lets them wait."""
    state[2] += 1
    state[3] = end
    number = state[0].number + 1
    words = clock.words
    at = W_LOADERS + (number % LOADER_SLOTS) * LOADER_WORDS
    if words[at + L_NUMBER] != number:
        clock.claim_slot(at, number)
    words[at + (L_EVAL_BATCHES if evaluating else L_BATCHES)] += 1
    words[at + (L_EVAL_WAIT if evaluating else L_WAIT)] += end - begin


def _came(state, batch):
    if evaluation.active:
        evaluation.finish()
    clock.batch_came(batch_size(batch))
    if state is not None:
        state[3] = clock.since
        if not state[0].feeds:
            newly_fed.append(state[0])
            clock.attention = True
        if state[2] == 0:
            _first(state, batch)
    settled_batch()


def _evaluated(state):
    evaluation.confirm()
    clock.eval_batch()
    if state is not None:
        state[3] = clock.switch(clock.EVAL)
        if state[2] == 0:
            _start_event(state)
    if clock.since >= clock.next_flush:
        clock.flush(clock.since)


def _first(state, batch):
    _start_event(state)
    if not state[0].told_batch:
        state[0].told_batch = True
        from . import environment

        environment.describe_batch(batch, "loader.%d" % state[0].number)


def _start_event(state):
    duration = (perf_counter_ns() - state[1]) / 1e6
    clock.event("loader-start", loader=state[0].number, workers=state[0].workers, duration_ms=duration)


@guard.quietly
def _ended(iterator, exhausted, evaluating):
    """No batch came: the loader is exhausted, or it failed."""
    global latest
    latest = None
    clock.here()
    state = getattr(iterator, "_flatout", None)
    if not evaluating:
        clock.base, clock.resting, clock.attention = clock.OTHER, -1, True
        clock.switch(clock.OTHER)
        if exhausted and state is not None and state[2] and not state[4]:
            state[4] = True
            state[0].epoch += 1
            duration = (perf_counter_ns() - state[1]) / 1e6
            clock.event("epoch", number=state[0].epoch, duration_ms=duration)
    else:
        evaluation.loader_ended()


def program_ended():
    for info in list(_known.values()):
        if info.latest is not None:
            _epoch(info.latest)


def instead(original, iterator, state):
    global fed
    if fed is not None and state is not None and state[0] is fed[0]:
        try:
            return original(fed[1])
        except Exception:
            fed = None
    return original(iterator) if held is None else hold(original, iterator, state)


def hold(original, iterator, state):
    number = state[0].number if state is not None else None
    if number not in held:
        held[number] = original(iterator)
    return held[number]


def resized(batch):
    """A part of the batch, or all of it several times. A batch of a kind that cannot be divided stays as it is from then on."""
    global first_samples, repeated
    try:
        if first_samples:
            return with_each(batch, batch_size(batch), lambda value: value[:first_samples])
        return with_each(batch, batch_size(batch), several)
    except Exception:
        first_samples, repeated = 0, 1
        return batch


def several(value):
    if isinstance(value, (list, tuple)):
        return value * repeated
    if isinstance(value, _tensor):
        return value.repeat(repeated, *[1] * (value.dim() - 1))
    import numpy

    return numpy.concatenate([value] * repeated)


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


def batch_size(batch, depth=0):
    """Samples in a batch: the first dimension of the first tensor in it."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    if depth > 3:
        return 0
    if isinstance(batch, dict) or hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for item in batch[:8]:
            size = batch_size(item, depth + 1)
            if size:
                return size
        if batch and isinstance(batch[0], (str, bytes, int, float)):
            return len(batch)
    return 0


def after_fork():
    global latest
    latest = None
    newly_fed.clear()
