"""`zero_grad`: whether gradients are dropped or filled with zeros, and what the filling takes. Told once, after a few calls; then
the program has its own function back."""

from statistics import median
from time import perf_counter_ns

from .. import clock, guard, places
from ..weave import weave

# The first calls are passed over: caches fill, and before the first backward there is nothing to fill with zeros.
TIMED = range(8, 20)
# The device may be behind: that many more calls are waited for.
PATIENCE = 500
_torch = None
_calls = 0
_spans = []
_begun = None
_woven = None
# Whether the program fills gradients with zeros; None until it has called `zero_grad`.
fills = None


def install(torch, cls):
    global _torch, _woven
    _torch = torch
    _woven = weave(cls.zero_grad, ("self", "set_to_none"), enter=begin, leave=end)


def begin(optimizer, set_to_none):
    """Times one filling: on a device between two events, which are read later."""
    global _calls, _begun, fills
    if guard.off:
        return
    _calls += 1
    if _calls == 1:
        fills = not set_to_none
        tell(set_to_none is True or set_to_none == 1)
    _begun = mark() if not set_to_none and _calls in TIMED else None


def end(optimizer, set_to_none, nothing):
    global _begun
    if not guard.off:
        if _begun is not None:
            _spans.append((_begun, mark()))
            _begun = None
        if done(set_to_none):
            _woven.rest()
    return nothing


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
