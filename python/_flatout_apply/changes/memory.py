"""Python's garbage collections and memory that goes back to the kernel."""

import functools
import gc
from time import perf_counter_ns

from _flatout_probe import clock
from _flatout_probe.ring import W_GC, W_GC_NS

from .. import malloc
from .change import Change

# Parts of the time below which nothing is felt.
COLLECTING, PAGES = 0.01, 0.03
# A collection of 1.2 million small objects took 0.1 to 0.25 s.
EACH_OBJECT_S = 0.2e-6
_before = None


def watch():
    global _before
    _before = clock.words[W_GC_NS], malloc.usage(), clock.words[W_GC], perf_counter_ns()


def propose(auto):
    found = []
    if _before is None:
        return found
    seconds = max((perf_counter_ns() - _before[3]) / 1e9, 1e-9)
    collecting_s, collections = (clock.words[W_GC_NS] - _before[0]) / 1e9, clock.words[W_GC] - _before[2]
    if collecting_s / seconds >= COLLECTING and collections and not gc.get_freeze_count():
        change = Freeze(1.0 / max(1.0 - 0.9 * min(collecting_s / seconds, 1.0), 0.05))
        change.predicted, change.cost_s = True, whole_collection_s()
        found.append(change)
    pages = malloc.part_on_pages(_before[1])
    if pages >= PAGES:
        change = Keep(1.0 + 0.5 * pages)
        change.predicted = True
        found.append(change)
    return found


@functools.cache
def whole_collection_s():
    """A collection of everything comes first; most of those that the program makes are of the youngest objects only."""
    return EACH_OBJECT_S * len(gc.get_objects())


class Freeze(Change):
    def __init__(self, expected):
        super().__init__("gc.freeze", "on", expected)
        self.frozen = 0

    def put(self):
        if gc.get_freeze_count():
            return "frozen-already"
        if gc.get_debug():
            # A collection would print, or keep what it finds.
            return "debugs-gc"
        gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
        return None

    def back(self):
        # Objects that the program froze since then stay so: there is no way to give back only ours.
        if gc.get_freeze_count() <= self.frozen:
            gc.unfreeze()


class Keep(Change):
    def __init__(self, expected):
        super().__init__("malloc.keep", "on", expected)

    def put(self):
        return None if malloc.keep() else "no-mallopt"

    def back(self):
        malloc.give_back()
