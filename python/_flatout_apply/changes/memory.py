"""Python's garbage collections and memory that goes back to the kernel."""

import gc

from _flatout_probe import clock, malloc
from _flatout_probe.ring import W_GC_NS

from .change import Change

# Parts of the time below which nothing is felt.
COLLECTING, PAGES = 0.01, 0.03
_before = None


def watch():
    global _before
    _before = clock.words[W_GC_NS], malloc.usage()


def propose(auto):
    found = []
    if _before is None:
        return found
    collecting = (clock.words[W_GC_NS] - _before[0]) / 1e9 / max(auto.baseline.seconds(), 1e-9)
    if collecting >= COLLECTING and not gc.get_freeze_count():
        found.append(Freeze(1.0 + collecting))
    if malloc.part_on_pages(_before[1]) >= PAGES:
        found.append(Keep(1.0 + malloc.part_on_pages(_before[1])))
    return found


class Freeze(Change):
    def __init__(self, expected):
        super().__init__("gc.freeze", "on", expected)

    def put(self):
        gc.collect()
        gc.freeze()
        return None

    def back(self):
        gc.unfreeze()


class Keep(Change):
    def __init__(self, expected):
        super().__init__("malloc.keep", "on", expected)

    def put(self):
        return None if malloc.keep() else "no-mallopt"

    def back(self):
        malloc.give_back()
