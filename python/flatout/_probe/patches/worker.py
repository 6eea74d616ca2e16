"""Inside a DataLoader's worker (or the main process without workers): time in the data set against time in collate."""

import os
from time import perf_counter_ns

from .. import clock, guard
from . import loader
from ..ring import L_COLLATE, L_FETCH, L_NUMBER, L_PREPARED, LOADER_SLOTS, LOADER_WORDS, W_LOADERS

_collated = 0
# In the training process itself, where timing costs the steps: after so many batches, of quick ones only one of a few is timed and
# counts for all.
ALL, ONE_OF, QUICK_NS = 64, 8, 5_000_000
_fetched = 0
_quick = False


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
        global _collated, _fetched, _quick
        if guard.off:
            return original(self, possibly_batched_index)
        times = 1
        if loader.fetching:
            _fetched += 1
            if _fetched > ALL and _quick:
                times = ONE_OF
                if _fetched % ONE_OF:
                    return original(self, possibly_batched_index)
        _collated, own = 0, getattr(self, "collate_fn", None)
        if own is None:
            return original(self, possibly_batched_index)
        self.collate_fn = timed(own)
        begin = perf_counter_ns()
        try:
            data = original(self, possibly_batched_index)
        finally:
            self.collate_fn = own
        try:
            total = perf_counter_ns() - begin
            _quick = total < QUICK_NS
            count(getattr(self, "_flatout_slot", 0), total, _collated, times)
        except Exception as error:
            guard.failed(error, "fetch")
        return data

    cls.fetch = fetch


def count(loader, total, collate, times=1):
    if loader == 0:
        # Nobody said whose fetch it is.
        return
    if not clock.ring.is_open:
        clock.begin()
    words = clock.words
    at = W_LOADERS + (loader % LOADER_SLOTS) * LOADER_WORDS
    if words[at + L_NUMBER] != loader:
        clock.claim_slot(at, loader)
    words[at + L_FETCH] += max(total - collate, 0) * times
    words[at + L_COLLATE] += collate * times
    words[at + L_PREPARED] += times
