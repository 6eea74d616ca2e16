"""`zero_grad`: whether gradients are dropped or filled with zeros, and what the filling takes. Told once, after a few calls; then
the program has its own function back."""

from statistics import median
from time import perf_counter_ns

from .. import clock, guard, places, settings

# The first calls are passed over: caches fill, and before the first backward there is nothing to fill with zeros.
TIMED = range(8, 20)
# The device may be behind: that many more calls are waited for.
PATIENCE = 500
_torch = None
_calls = 0
_spans = []


def install(torch, cls):
    global _torch
    _torch = torch
    original = cls.zero_grad
    compiling = guard.compiling

    @guard.like(original)
    def zero_grad(self, set_to_none=True):
        global _calls
        if compiling() or guard.off:
            return original(self, set_to_none)
        set_to_none = settings.values.get("zero_grad.set_to_none", set_to_none)
        _calls += 1
        if _calls == 1:
            tell(set_to_none)
        if set_to_none or _calls < TIMED.start:
            result = original(self, set_to_none)
        else:
            result = timed(self, original)
        if done(set_to_none) and "zero_grad.set_to_none" not in settings.values and cls.zero_grad is zero_grad:
            cls.zero_grad = original
        return result

    cls.zero_grad = zero_grad


def timed(self, original):
    """One filling with its time: on a device between two events, which are read later."""
    if _calls not in TIMED:
        return original(self, False)
    begin = mark()
    result = original(self, False)
    if begin is not None:
        _spans.append((begin, mark()))
    return result


@guard.quietly
def mark():
    cuda = _torch.cuda
    if not cuda.is_initialized():
        return perf_counter_ns()
    if cuda.is_current_stream_capturing():
        return None
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


def done(set_to_none):
    """Whether it has told all it can."""
    if _calls < TIMED.stop:
        return False
    return set_to_none or _calls > TIMED.stop + PATIENCE or bool(tell_time())


@guard.quietly
def tell_time():
    spans = [span for span in _spans if span[1] is not None]
    if not spans:
        return True
    if isinstance(spans[0][0], int):
        taken = [(end - begin) / 1e6 for begin, end in spans]
    elif spans[-1][1].query():
        taken = [begin.elapsed_time(end) for begin, end in spans]
    else:
        return False
    _spans.clear()
    clock.fact("zero_grad.ms", median(taken))
    return True


@guard.quietly
def tell(set_to_none):
    clock.fact("zero_grad.set_to_none", bool(set_to_none), None, places.user_place(2))
