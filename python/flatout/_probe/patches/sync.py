"""Reads of a tensor's value by the host, and copies between host and device, with the line that asks for them.

On a CUDA tensor the host waits there for the device; on a CPU tensor it does not, and the event says which it was.
"""

from threading import get_ident
from time import perf_counter_ns

from .. import clock, guard, places
from ..clock import BEGUN, TRANSFER
from ..ring import W_LOSS, W_LOSSES, W_STEPS

_sites = {}
_inside = False
_steps_told = 0
_next = _interval = 0
# Once a second at first, then rarer: a site's line repeats, and a day of them must stay small.
SHORTEST_NS, LONGEST_NS = 900_000_000, 10_000_000_000

READS = {
    "item": "item",
    "tolist": "tolist",
    "numpy": "numpy",
    "cpu": "cpu",
    "__bool__": "bool",
    "__float__": "float",
    "__int__": "int",
    "__repr__": "print",
}


def install(torch):
    for name, what in READS.items():
        _patch_read(torch.Tensor, name, what)
    # Without a device there is nothing to copy to: as long as none is awake, copies are torch's own.
    if hasattr(torch.cuda, "_lazy_call"):
        torch.cuda._lazy_call(lambda: patch_copies(torch))
    else:
        patch_copies(torch)
    _patch_wait(torch.cuda, "synchronize")
    _patch_wait(torch.cuda.Stream, "synchronize")
    _patch_wait(torch.cuda.Event, "synchronize")
    clock.flushers.append(flush)


def _patch_read(cls, name, what):
    original = getattr(cls, name)
    is_item = what == "item"
    prints = what == "print"
    compiling = guard.compiling

    def read(self, *args, **kwargs):
        global _inside
        if compiling() or _inside or guard.off or (prints and not self.is_cuda):
            return original(self, *args, **kwargs)
        _inside = True
        begin = perf_counter_ns()
        try:
            value = original(self, *args, **kwargs)
        finally:
            _inside = False
        try:
            seen(self, what, begin, perf_counter_ns())
            if is_item and type(value) is float and self.requires_grad:
                clock.words[W_LOSS] = _bits(value)
                clock.words[W_LOSSES] += 1
        except Exception as error:
            guard.failed(error, what)
        return value

    setattr(cls, name, guard.like(original)(read))


def _bits(value):
    import struct

    return struct.unpack("<Q", struct.pack("<d", value))[0]


def seen(tensor, what, begin, end):
    """One read. On the device the wait belongs to `sync`; on the host it is a part of the computing."""
    frame = places._getframe(2)
    if tensor.is_cuda:
        if get_ident() == clock.thread:
            clock.span(clock.SYNC, begin, end)
        count(what, "cuda", end - begin, places.outside_torch(frame))
    elif places.kind_of(frame.f_code) > places.TORCH:
        # On the host torch's own reads (Adam's step count) are nobody's concern.
        count(what, "cpu", end - begin, frame)


def count(what, device, spent, frame):
    if frame is None:
        return
    code = frame.f_code
    key = (what, device, id(code), frame.f_lasti)
    site = _sites.get(key)
    if site is None:
        if len(_sites) >= 10_000:
            return
        # With its code, whose id is the key's.
        site = _sites[key] = [0, 0, places.place_of(frame), code]
    site[0] += 1
    site[1] += spent


@guard.quietly
def patch_copies(torch):
    _patch_copy(torch.Tensor, "to")
    _patch_copy(torch.Tensor, "cuda")


def _patch_copy(cls, name):
    original = getattr(cls, name)
    compiling = guard.compiling

    def copy(self, *args, **kwargs):
        if compiling() or _inside or guard.off:
            return original(self, *args, **kwargs)
        begin = perf_counter_ns()
        result = original(self, *args, **kwargs)
        try:
            if self.is_cuda is not result.is_cuda:
                if clock.coasting and result.is_cuda and get_ident() == clock.thread:
                    # As `clock.span`, without the way there: a steady step has some of these.
                    clock.log.extend((begin * 8 + BEGUN, perf_counter_ns() * 8 + TRANSFER))
                else:
                    copied(self, result, begin)
        except Exception as error:
            guard.failed(error, name)
        return result

    setattr(cls, name, guard.like(original)(copy))


def copied(source, result, begin):
    end = perf_counter_ns()
    if not result.is_cuda:
        seen(source, "to-cpu", begin, end)
    elif get_ident() == clock.thread:
        clock.span(TRANSFER, begin, end)


def _patch_wait(owner, name):
    original = getattr(owner, name, None)
    if original is None:
        return
    compiling = guard.compiling

    def synchronize(*args, **kwargs):
        if compiling() or guard.off:
            return original(*args, **kwargs)
        begin = perf_counter_ns()
        result = original(*args, **kwargs)
        try:
            end = perf_counter_ns()
            if get_ident() == clock.thread:
                clock.span(clock.SYNC, begin, end)
            count("synchronize", "cuda", end - begin, places.calling_frame(1))
        except Exception as error:
            guard.failed(error, "synchronize")
        return result

    setattr(owner, name, guard.like(original)(synchronize))


def flush(last=False):
    global _steps_told, _next, _interval
    now = perf_counter_ns()
    if now < _next and not last:
        return
    _interval = min(max(int(_interval * 1.1), SHORTEST_NS), LONGEST_NS)
    _next = now + _interval
    steps = clock.words[W_STEPS]
    passed, _steps_told = steps - _steps_told, steps
    for (what, device, _, _), site in _sites.items():
        if site[0]:
            clock.event(
                "sync", what=what, place=site[2], count=site[0], blocked_ms=site[1] / 1e6, steps=passed, device=device
            )
            site[0] = site[1] = 0


def after_fork():
    global _inside, _steps_told
    _inside, _steps_told = False, 0
    _sites.clear()
