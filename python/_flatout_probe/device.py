"""Device time of single steps by CUDA events: recorded on a few steps a second, read when they are long over, never waited for.

What lies between the batch's coming and the step's last kernel counts as busy, launch gaps within included: it is an upper bound.
"""

from . import clock
from .ring import W_BATCHES, W_BUSY, W_BUSY_STEPS

SAMPLE_NS = 100_000_000
_waiting = []
_begin = None
_next = 0


def batch_came(torch, now):
    """A batch is there: a sampled step's device time begins, if a sample is due."""
    global _begin
    if now >= _next and len(_waiting) < 8 and not torch.cuda.is_current_stream_capturing():
        _begin = torch.cuda.Event(enable_timing=True)
        _begin.record()


def step_ended(torch, now):
    """A step ended."""
    global _begin, _next
    if _begin is not None:
        if not torch.cuda.is_current_stream_capturing():
            end = torch.cuda.Event(enable_timing=True)
            end.record()
            _waiting.append((_begin, end))
        _begin = None
        _next = now + SAMPLE_NS
    elif _waiting and _waiting[0][1].query():
        begin, end = _waiting.pop(0)
        clock.words[W_BUSY] += int(begin.elapsed_time(end) * 1e6)
        clock.words[W_BUSY_STEPS] += 1
    elif now >= _next + 10 * SAMPLE_NS and not clock.words[W_BATCHES]:
        # No loader tells of batches: the step begins where the last one ended.
        batch_came(torch, now)


def waits():
    """A step's device time is under way: its end must not be missed."""
    return _begin is not None
