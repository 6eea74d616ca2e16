"""Inside a DataLoader's worker (or the main process without workers): time in the data set against time in collate."""

import os
from time import perf_counter_ns

from .. import clock, coast, guard
from ..ring import L_BATCHES, L_COLLATE, L_EVAL_BATCHES, L_FETCH, L_NUMBER, L_PREPARED, LOADER_SLOTS, LOADER_WORDS, W_LOADERS

_collated = 0
# In the training process itself timing costs the steps. While its loop coasts, after so many batches, of quick ones one is timed now
# and then and counts for all; in between the class has its own function back.
ALL, QUICK_NS = 64, 5_000_000
_fetched = 0
_at_rest = []


def install(torch):
    from torch.utils.data._utils import fetch

    _patch_init(fetch._BaseDatasetFetcher)
    for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        _patch_fetch(cls)


def _patch_init(cls):
    original = cls.__init__

    @guard.like(original)
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        if not guard.off:
            from . import loader

            number = loader.starting or int(os.environ.get("FLATOUT_LOADER") or 0)
            self._flatout_slot = number
        original(self, dataset, auto_collation, collate_fn, drop_last)

    cls.__init__ = __init__


def timed(collate_fn):
    def collate(data):
        global _collated
        begin = perf_counter_ns()
        try:
            return collate_fn(data)
        finally:
            _collated = perf_counter_ns() - begin

    return collate


def _patch_fetch(cls):
    original = cls.fetch

    @guard.like(original)
    def fetch(self, possibly_batched_index):
        global _collated, _fetched
        own = getattr(self, "collate_fn", None)
        if guard.off or own is None:
            return original(self, possibly_batched_index)
        _collated = 0
        self.collate_fn = timed(own)
        begin = perf_counter_ns()
        try:
            data = original(self, possibly_batched_index)
        finally:
            self.collate_fn = own
        try:
            total = perf_counter_ns() - begin
            count(getattr(self, "_flatout_slot", 0), total, _collated)
            _fetched += 1
            if _fetched > ALL and total < QUICK_NS and clock.coasting and coast.fetching and cls.fetch is fetch:
                cls.fetch = original
                _at_rest.append((cls, original, fetch))
        except Exception as error:
            guard.failed(error, "fetch")
        return data

    cls.fetch = fetch


def time_one():
    """The next batch is timed again."""
    while _at_rest:
        cls, original, fetch = _at_rest.pop()
        if cls.fetch is original:
            cls.fetch = fetch


def count(loader, total, collate):
    if loader == 0:
        # Nobody said whose fetch it is.
        return
    if not clock.ring.is_open:
        clock.begin()
    words = clock.words
    at = W_LOADERS + (loader % LOADER_SLOTS) * LOADER_WORDS
    if words[at + L_NUMBER] != loader:
        clock.claim_slot(at, loader)
    times = 1
    if coast.fetching:
        # In this process every batch is taken as soon as it is made: those between went untimed.
        times = max(words[at + L_BATCHES] + words[at + L_EVAL_BATCHES] + 1 - words[at + L_PREPARED], 1)
    words[at + L_FETCH] += max(total - collate, 0) * times
    words[at + L_COLLATE] += collate * times
    words[at + L_PREPARED] += times
