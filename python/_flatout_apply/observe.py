"""What the program's data does while it is fetched, in this process and in the workers it forks: random numbers that are drawn, and
whether its code asks which worker it runs in. Only while `--auto` watches."""

import mmap
import sys

from _flatout_probe import guard, places
from _flatout_probe.patches import worker
from _flatout_probe.weave import weave

from . import randomness

DRAWS, ASKS = 0, 1
# By the loader's number, two bytes each, shared with forked workers.
SLOTS = 1024
_shared = mmap.mmap(-1, 2 * SLOTS)
_fetch = None
_cls = None
_inside = False
# Batches of a process after which enough was seen: workers that were forked meanwhile go on without the one that made them.
FETCHED, _fetched = 64, 0


def install():
    global _cls, _fetch
    from torch.utils.data._utils import fetch
    from torch.utils.data._utils import worker as torch_worker

    _cls = fetch._MapDatasetFetcher
    _fetch = original = _cls.fetch

    @guard.like(original)
    def fetched(self, indices):
        global _inside, _fetched
        _fetched += 1
        if _fetched > FETCHED:
            done()
        before, _inside = randomness.state(), True
        try:
            return original(self, indices)
        finally:
            _inside = False
            if randomness.state() != before:
                mark(DRAWS)

    _cls.fetch = fetched
    weave(torch_worker.get_worker_info, (), enter=asked)


def done():
    """Enough was seen."""
    if _cls is not None:
        _cls.fetch = _fetch


def asked():
    if places.kind_of(sys._getframe(2).f_code) == places.USER:
        mark(ASKS)


def mark(what):
    try:
        _shared[2 * (worker.slot() % SLOTS) + what] = 1
    except Exception as error:
        guard.failed(error, "observe")


def saw(number, what):
    """Of the loader with this number."""
    return bool(_shared[2 * ((number + 1) % SLOTS) + what])
