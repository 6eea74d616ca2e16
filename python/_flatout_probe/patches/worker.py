"""Inside a DataLoader's worker (or the main process without workers): time in the data set against time in collate."""

import os
from time import perf_counter_ns

from .. import clock, coast, guard
from ..weave import weave
from ..ring import L_BATCHES, L_COLLATE, L_EVAL_BATCHES, L_FETCH, L_NUMBER, L_PREPARED, LOADER_SLOTS, LOADER_WORDS, W_LOADERS

# When the fetch under way began, when its collating did, and how many are under way within each other.
_begun = _collating = _depth = 0
# Of a worker: its loader's number plus one.
_worker_of = None
# In the training process itself timing costs the steps. While its loop coasts, after so many batches, of quick ones one is timed now
# and then and counts for all; in between the function has its own code back.
ALL, QUICK_NS = 64, 5_000_000
_fetched = 0
_woven = []
_at_rest = []


def install(torch):
    from torch.utils.data._utils import fetch

    for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        hooks = {"enter": begin, "leave": end, "fail": failed, "argument_of": "collate_fn", "argument": collate}
        _woven.append(weave(cls.fetch, **hooks))


def begin(fetcher):
    global _depth, _begun, _collating
    if clock.get_ident() == clock.thread:
        _depth += 1
        if _depth == 1:
            _begun, _collating = perf_counter_ns(), 0


def collate(data):
    global _collating
    if _depth == 1 and clock.get_ident() == clock.thread:
        _collating = perf_counter_ns()
    return data


def failed(fetcher):
    global _depth
    if _depth and clock.get_ident() == clock.thread:
        _depth -= 1


def end(fetcher, data):
    global _depth, _fetched
    if not _depth or clock.get_ident() != clock.thread:
        return data
    _depth -= 1
    if guard.off or _depth:
        return data
    try:
        now = perf_counter_ns()
        count(slot(), now - _begun, now - _collating if _collating else 0)
        _fetched += 1
        if _fetched > ALL and now - _begun < QUICK_NS and clock.coasting and coast.fetching:
            _at_rest.extend(woven for woven in _woven if woven is not None and woven not in _at_rest)
            for woven in _at_rest:
                woven.rest()
    except BaseException as error:
        if guard.foreign(error, "fetch"):
            raise
    return data


def slot():
    """The loader that the fetch is for, by its number plus one; 0 where nobody said."""
    global _worker_of
    from . import loader

    if _worker_of is None:
        told = loader.starting or int(os.environ.get("FLATOUT_LOADER") or 0)
        _worker_of = told if clock.in_worker() else 0
    return _worker_of or coast.number() or loader.number()


def time_one():
    """The next batch is timed again."""
    while _at_rest:
        _at_rest.pop().wake()


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


def after_fork():
    global _depth, _worker_of
    _depth, _worker_of = 0, None
