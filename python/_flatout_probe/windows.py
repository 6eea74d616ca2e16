"""GPU windows: `flatout run` asks for one through a word of the ring; between two steps it is opened, and later closed.

A window is closed for good each time: CUPTI, once enabled, makes every launch slower until it is detached.
"""

import os
from time import perf_counter_ns

from . import clock, guard, tracer
from .ring import W_STEPS, W_WINDOW

# A window ends by itself, between two steps: sooner where synchronizations are recorded, which cost more.
LONGEST_NS = 800_000_000
LONGEST_WITH_SYNCS_NS = 300_000_000
MOST_RECORDS = 400_000
# Kernels and copies; a number beyond this asks for memsets, synchronizations and launches as well, which cost far more.
KINDS = tracer.KERNEL | tracer.MEMCPY
ALL_KINDS = KINDS | tracer.MEMSET | tracer.SYNCHRONIZATION | tracer.RUNTIME | tracer.DRIVER
WITH_SYNCS = 1 << 32

_folder = os.path.dirname(os.path.abspath(__file__))
_open = 0
_refused = 0
_path = ""
_began = 0
_steps = 0


def install(torch):
    if os.environ.get("FLATOUT_TRACE") == "off" or not clock.folder:
        return
    clock.after_some_steps.append(look)
    clock.enders.append(ended)


def look(now):
    """After a step: whether a window should be open."""
    wanted = clock.words[W_WINDOW]
    if _open:
        longest = LONGEST_WITH_SYNCS_NS if _open > WITH_SYNCS else LONGEST_NS
        if wanted != _open or now - _began > longest:
            close()
    elif wanted and wanted != _refused:
        begin(wanted, now)


@guard.quietly
def begin(number, now):
    global _open, _refused, _path, _began, _steps
    _refused = number
    reason = tracer.open(_folder)
    path = os.path.join(clock.folder, "%d-%d.trace" % (os.getpid(), number))
    reason = reason or tracer.start(path, MOST_RECORDS, ALL_KINDS if number > WITH_SYNCS else KINDS)
    if reason:
        tell("", 0, reason)
        return
    _open, _path, _began, _steps = number, path, now, clock.words[W_STEPS]


@guard.quietly
def close():
    global _open
    _open = 0
    _, reason = tracer.stop(final=True)
    tell(_path, clock.words[W_STEPS] - _steps, reason)


def tell(path, steps, reason):
    clock.ring.emit({"at": perf_counter_ns(), "window": {"path": path, "steps": steps, "reason": reason}})


def ended():
    if _open:
        close()


def after_fork():
    global _open
    _open = 0
