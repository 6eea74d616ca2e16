"""`flatout run --profile`: a few steps under torch's own profiler, once; its trace goes into the record's folder.

The time that starting the profiler and writing the trace takes belongs to no phase, and is told by itself: the program would not
have spent it.
"""

import os
import warnings
from time import perf_counter_ns

from . import clock, guard
from .ring import W_STEPS

STEPS = 5
# Later than this many steps, or than this long after the first step when steps are slow.
WARM_STEPS, WARM_NS = 30, 10_000_000_000
_torch = None
_profiler = None
_first = 0
_left = STEPS
_paused = _spent = 0
_target = os.environ.get("FLATOUT_PROFILE")


def install(torch):
    global _torch
    if _target and os.environ.get("RANK", "0") == "0":
        _torch = torch
        clock.after_step.append(step_ended)
        clock.enders.append(program_ended)


def step_ended(now):
    global _first, _left
    if _first == 0:
        _first = now
    if _profiler is not None:
        _left -= 1
        if _left == 0:
            finish()
        else:
            quietly(_profiler.step)
    elif _left == STEPS and (clock.words[W_STEPS] >= WARM_STEPS or now - _first >= WARM_NS):
        begin()


def always(step):
    """Every step is recorded; with a schedule the trace marks where each begins and ends."""
    return _torch.profiler.ProfilerAction.RECORD


def begin():
    global _profiler, _left
    if _torch._C._autograd._profiler_enabled():
        _left = -1
        clock.fact("profile.refused", "another-profiler")
        return
    profiler = _torch.profiler
    activities = [profiler.ProfilerActivity.CPU]
    if _torch.cuda.is_initialized():
        activities.append(profiler.ProfilerActivity.CUDA)
    pause()
    begun = profiler.profile(activities=activities, schedule=always)
    quietly(begun.start)
    _profiler = begun
    not_the_programs()


def finish():
    """Ends the profile and writes the trace. Under another name until it is whole."""
    global _profiler
    ended, _profiler = _profiler, None
    pause()
    try:
        if _torch.cuda.is_initialized():
            _torch.cuda.synchronize()
        quietly(ended.stop)
        part = _target + ".part"
        ended.export_chrome_trace(part)
        os.replace(part, _target)
        clock.fact("profile.steps", STEPS)
    except Exception as error:
        # A disk that is full, a driver that lets nobody profile: the training goes on, and so does the probe.
        clock.note("probe", "no profile: %s" % str(error)[:500])
    not_the_programs()


def quietly(function):
    """The profiler's advice is not for the program's user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()


def pause():
    """No phase is under way."""
    global _paused
    _paused = perf_counter_ns()
    clock.words[clock.W_SINCE] = 0


def not_the_programs():
    """What passed since the step ended is charged to nobody, and the next step is no measure."""
    global _spent
    now = perf_counter_ns()
    _spent += now - _paused
    clock.fact("profile.seconds", _spent / 1e9)
    clock.words[clock.W_SINCE] = clock.since = now
    clock.no_measure()


@guard.quietly
def program_ended():
    """The program ends before the profile does: what there is, is kept."""
    if _profiler is not None:
        finish()


def after_fork():
    global _profiler, _left
    _profiler, _left = None, -1
