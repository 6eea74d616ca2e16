"""Reads of a tensor's value by the host, and copies between host and device, with the line that asks for them.

On a CUDA tensor the host waits there for the device; on a CPU tensor it does not, and the event says which it was.
"""

from struct import Struct
from threading import get_ident
from time import perf_counter_ns

from .. import clock, guard, places
from ..clock import BEGUN, SYNC, TRANSFER
from ..places import _getframe
from ..ring import W_LOSS, W_LOSSES, W_STEPS

# What was asked for: by the code that did, where in it, and whether it was on a device: how often, the time, the line, and the code,
# whose id is the key's.
_asked = {}
_inside = False
# The loss read last, and how many were since the words had it.
_loss, _losses = 0.0, 0
_pack, _unpack = Struct("<d").pack, Struct("<Q").unpack
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
    clock.settlers.append(store_loss)


def _patch_read(cls, name, what):
    original = getattr(cls, name)
    is_item = what == "item"
    prints = what == "print"
    compiling = guard.compiling
    sites = _asked.setdefault(what, {})

    def read(self, *args, **kwargs):
        global _inside, _loss, _losses
        if compiling() or _inside or guard.off or (prints and not self.is_cuda):
            return original(self, *args, **kwargs)
        _inside = True
        begin = perf_counter_ns()
        try:
            value = original(self, *args, **kwargs)
        finally:
            _inside = False
        try:
            # As `seen`, without the way there: many loops read a loss at every step.
            end, frame, on = perf_counter_ns(), _getframe(1), self.is_cuda
            if on and get_ident() == clock.thread:
                clock.span(SYNC, begin, end)
            site = sites.get((id(frame.f_code), frame.f_lasti, on)) or site_of(sites, on, frame)
            site[0] += 1
            site[1] += end - begin
            if is_item and type(value) is float and self.requires_grad:
                _loss = value
                _losses += 1
                if not clock.coasting:
                    store_loss()
        except Exception as error:
            guard.failed(error, what)
        return value

    setattr(cls, name, guard.like(original)(read))


def store_loss():
    global _losses
    if _losses:
        clock.words[W_LOSS] = _unpack(_pack(_loss))[0]
        clock.words[W_LOSSES] += _losses
        _losses = 0


def seen(what, on, begin, end, frame):
    """One read. On the device the wait belongs to `sync`; on the host it is a part of the computing."""
    if on and get_ident() == clock.thread:
        clock.span(SYNC, begin, end)
    site = site_of(_asked.setdefault(what, {}), on, frame)
    site[0] += 1
    site[1] += end - begin


def site_of(sites, on, frame):
    """Where it is counted."""
    near = frame
    if on:
        frame = places.outside_torch(frame)
    elif places.kind_of(frame.f_code) <= places.TORCH:
        # On the host torch's own reads (Adam's step count) are nobody's concern.
        frame = None
    key = None if frame is None else (id(frame.f_code), frame.f_lasti, on)
    site = sites.get(key)
    if site is None:
        site = [0, 0, places.place_of(frame), frame and frame.f_code]
        if len(sites) >= 10_000:
            return site
        sites[key] = site
    if frame is None and not on:
        sites[id(near.f_code), near.f_lasti, on] = site
    return site


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
                    copied(result, begin)
        except Exception as error:
            guard.failed(error, name)
        return result

    setattr(cls, name, guard.like(original)(copy))


def copied(result, begin):
    end = perf_counter_ns()
    if not result.is_cuda:
        seen("to-cpu", True, begin, end, _getframe(2))
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
            seen("synchronize", True, begin, perf_counter_ns(), _getframe(1))
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
    for what, sites in list(_asked.items()):
        for key, site in list(sites.items()):
            if not site[0] or not site[2]:
                continue
            count, spent, site[0], site[1] = site[0], site[1], 0, 0
            device = "cuda" if key[2] else "cpu"
            clock.event("sync", what=what, place=site[2], count=count, blocked_ms=spent / 1e6, steps=passed, device=device)


def after_fork():
    global _inside, _steps_told, _losses
    _inside, _steps_told, _losses = False, 0, 0
    for sites in _asked.values():
        sites.clear()
