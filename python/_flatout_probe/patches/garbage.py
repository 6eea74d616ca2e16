"""Python's garbage collections: how many, how long."""

import gc
from time import perf_counter_ns

from .. import clock, guard
from ..ring import W_GC, W_GC_NS

_begun = 0


def install(torch):
    gc.callbacks.append(callback)


def callback(moment, info):
    global _begun
    if guard.off:
        return
    if moment == "start":
        _begun = perf_counter_ns()
    elif _begun:
        words = clock.words
        words[W_GC] += 1
        words[W_GC_NS] += perf_counter_ns() - _begun
