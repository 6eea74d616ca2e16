"""Python's garbage collections: how many, how long.

A callback written in Python would be a place where a signal handler can run, and Python prints and drops what a handler raises inside of a
callback. So the callback is put together from Python's own C code, in which no handler runs: `getattr(moments, "start", info)` asks a
property, whose getter takes the next element of a chain of iterators. Only additions: a multiplication of large numbers looks for signals.
"""

import gc
from collections import deque
from functools import partial
from itertools import accumulate, count
from time import perf_counter_ns

from .. import clock
from ..ring import W_GC, W_GC_NS

# How many collections began and ended, and the sum of the times when they did. While one is under way the numbers differ.
_begun, _ended = deque([(0, 0)], maxlen=1), deque([(0, 0)], maxlen=1)
_told = (0, 0)


def noting(latest):
    """A getter that writes how often it was called and the sum of the times."""
    times = accumulate(iter(perf_counter_ns, None))
    return property(partial(next, map(latest.append, zip(count(1), times))))


def install(torch):
    Moments = type("Moments", (), {"__slots__": (), "start": noting(_begun), "stop": noting(_ended)})
    gc.callbacks.append(partial(getattr, Moments()))
    clock.flushers.append(flush)


def totals():
    """The collections so far and the time in them; None while one is under way."""
    (begun, begins), (ended, ends) = _begun[0], _ended[0]
    return (ended, ends - begins) if begun == ended else None


def flush(last=False):
    global _told
    now = totals()
    if now is not None:
        before, _told = _told, now
        clock.words[W_GC] += now[0] - before[0]
        clock.words[W_GC_NS] += now[1] - before[1]


def after_fork():
    """What the parent collected is not the child's."""
    global _told
    _told = totals() or _told
