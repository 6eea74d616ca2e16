"""Reads of a tensor's value by the host, and copies between host and device, with the line that asks for them.

On a CUDA tensor the host waits there for the device; on a CPU tensor it does not, and the event says which it was.

No method is replaced. The entry in the dictionary of torch's C class becomes a descriptor that gives the method itself when it is asked of
the class, so that `torch.Tensor.item` is what it was, in pickles too; asked of a tensor it gives a callable of Python's own C code
around the method, where the bytecode says that it is called at once. While the method runs, no frame of the probe is on the stack. Until
CUDA is initialized only `item` is followed, for the loss.
"""

import gc
import sys
from sys import getprofile
from itertools import repeat
from struct import Struct
from threading import get_ident
from time import perf_counter_ns
from types import MethodType

from .. import clock, guard, places
from ..clock import BEGUN, SYNC, TRANSFER
from ..places import _getframe
from ..weave import weave
from ..ring import W_LOSS, W_LOSSES, W_STEPS, W_WITHIN

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

# Methods without arguments, and those that may have some.
READS = {"item": "item", "tolist": "tolist", "__bool__": "bool", "__float__": "float", "__int__": "int"}
COPIES = {"cpu": "cpu", "numpy": "numpy", "to": "to", "cuda": "to"}
_torch = _base = _is_cuda = _requires_grad = _mode_enabled = None
_plain = ()


def install(torch):
    global _torch, _base, _is_cuda, _requires_grad, _mode_enabled, _plain, _opcode
    _torch, _base = torch, torch._C.TensorBase
    _plain = (torch.Tensor, torch.nn.Parameter)
    _is_cuda, _requires_grad = _base.is_cuda.__get__, _base.requires_grad.__get__
    _mode_enabled = torch._C._is_torch_function_mode_enabled
    # torch has imported it.
    _opcode = sys.modules["opcode"]
    _follow({"item": Read("item", "item")})
    torch.cuda._lazy_call(device_awake)
    clock.flushers.append(flush)
    clock.settlers.append(store_loss)


def _follow(readers):
    """Puts descriptors into the dictionary of torch's C class, which Python's own `setattr` refuses."""
    (entries,) = gc.get_referents(vars(_base))
    import ctypes

    entries.update(readers)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(_base))


@guard.quietly
def device_awake():
    """CUDA is initialized: from now on reads wait for the device."""
    readers = {name: Read(name, what) for name, what in READS.items() if name != "item"}
    readers.update({name: Copy(name, what) for name, what in COPIES.items()})
    _follow(readers)
    weave(_torch.Tensor.__repr__, enter=printing, leave=printed, fail=not_printed)
    weave(_torch.cuda.synchronize, (), enter=waiting, leave=waited, fail=stopped)
    weave(_torch.cuda.Stream.synchronize, enter=waiting, leave=waited, fail=stopped)
    weave(_torch.cuda.Event.synchronize, enter=waiting, leave=waited, fail=stopped)
    _read_directly()


def _read_directly():
    """Optimizers read their own step counts, two per parameter: without the probe, which has no use for them."""
    from torch.optim import optimizer

    original, item = getattr(optimizer, "_get_value", None), vars(_base)["item"].original
    if original is not None:
        weave(original, (), instead_of="item", instead=item)


# Python's table of its bytecode, and what was found out about instructions: the answer, and the code, whose id is the key's.
_opcode = None
_known = {}


def once(ask):
    """Asks about an instruction the first time it runs."""

    def answer(frame):
        code, at = frame.f_code, frame.f_lasti
        known = _known.get((ask, id(code), at))
        if known is None:
            known = ask(code, at), code
            if len(_known) < 10_000:
                _known[ask, id(code), at] = known
        return known[0]

    return answer


def is_call(operation, argument):
    """Whether it is the bytecode of `x.item` in `x.item()`."""
    if sys.version_info < (3, 12):
        return _opcode.opname[operation] == "LOAD_METHOD"
    return _opcode.opname[operation] == "LOAD_ATTR" and argument & 1 == 1


@once
def calls(code, at):
    """Whether the method that is asked for is called at once. A program that keeps it gets torch's own."""
    return is_call(*code.co_code[at : at + 2])


@once
def converts(code, at):
    """The same for `__bool__` and others, which `bool(x)` and `if x:` ask for without naming them; `getattr` keeps what it gets."""
    operation, argument = code.co_code[at : at + 2]
    if _opcode.opname[operation] in ("LOAD_ATTR", "LOAD_METHOD"):
        return is_call(operation, argument)
    return "getattr" not in code.co_names


@once
def keeps(code, at):
    """Whether a method with arguments is asked for and not called. `x.to(*a)`, and up to Python 3.10 `x.to(a, b=c)`, ask for it as `x.to`
    does: then what takes the method from the stack says which it is."""
    operations = code.co_code
    operation, argument = operations[at : at + 2]
    if is_call(operation, argument):
        return False
    if _opcode.opname[operation] != "LOAD_ATTR":
        return True
    height, extended = 1, 0
    for at in range(at + 2, len(operations), 2):  # noqa: B020
        operation, name = operations[at], _opcode.opname[operations[at]]
        if operation in _opcode.hasjrel or operation in _opcode.hasjabs:
            return False
        argument, extended = operations[at + 1] | extended, 0
        if name == "EXTENDED_ARG":
            extended = argument << 8
        elif name != "CACHE":
            height += _opcode.stack_effect(operation, argument if operation >= _opcode.HAVE_ARGUMENT else None)
            if height <= 1:
                # The result of a call up to Python 3.10 has the method's place; an argument's place is gone.
                return name != "CALL_FUNCTION_EX" and (height < 1 or not name.startswith("CALL_FUNCTION"))
    return False


class Read:
    """A method without arguments that reads a tensor's value."""

    __slots__ = ("original", "what", "is_item", "sites", "is_called")

    def __init__(self, name, what):
        self.original, self.what, self.is_item = vars(_base)[name], what, name == "item"
        self.sites = _asked.setdefault(what, {})
        self.is_called = converts if name.startswith("__") else calls

    def __get__(self, tensor, owner=None):
        original = self.original
        if tensor is None:
            return original
        # A profiler of the program would miss the call: it is told of functions in C, not of iterators.
        if type(tensor) not in _plain or _inside or guard.off or _mode_enabled() or getprofile() is not None:
            return original.__get__(tensor)
        try:
            on, frame = _is_cuda(tensor), _getframe(1)
            site = self.sites.get((id(frame.f_code), frame.f_lasti, on))
            if site is None:
                if not self.is_called(frame):
                    return original.__get__(tensor)
                site = site_of(self.sites, on, frame)
            site[0] += 1
            if on:
                loss = self.is_item and _requires_grad(tensor)
                return map(Ending(site, loss), map(original, repeat(tensor))).__next__
            if self.is_item and _requires_grad(tensor):
                return map(loss_read, map(original, repeat(tensor))).__next__
        except BaseException as error:
            if guard.foreign(error, self.what):
                raise
        return original.__get__(tensor)


class Ending:
    """Called with the value that was read, right after."""

    __slots__ = ("site", "loss", "begin")

    def __init__(self, site, loss):
        if get_ident() == clock.thread:
            clock.words[W_WITHIN] = SYNC + 1
        self.site, self.loss, self.begin = site, loss, perf_counter_ns()

    def __call__(self, value):
        end = perf_counter_ns()
        try:
            self.site[1] += end - self.begin
            if get_ident() == clock.thread:
                clock.words[W_WITHIN] = clock.within
                clock.span(SYNC, self.begin, end)
            if self.loss:
                loss_read(value)
        except BaseException as error:
            if guard.foreign(error, "read"):
                raise
        return value


def loss_read(value):
    global _loss, _losses
    if type(value) is float:
        _loss = value
        _losses += 1
        if not clock.coasting:
            store_loss()
    return value


class Copy:
    """A method with arguments that may copy between host and device. Here a function of the probe is around the call: only the result
    says what was copied."""

    __slots__ = ("original", "around")

    def __init__(self, name, what):
        self.original = vars(_base)[name]
        self.around = timed_copy(self.original, what)

    def __get__(self, tensor, owner=None):
        if tensor is None:
            return self.original
        if type(tensor) not in _plain or _inside or guard.off or _mode_enabled() or keeps(_getframe(1)):
            return self.original.__get__(tensor)
        return MethodType(self.around, tensor)


def timed_copy(original, what):
    def copy(tensor, *args, **kwargs):
        own = get_ident() == clock.thread
        if own:
            clock.words[W_WITHIN] = (SYNC if _is_cuda(tensor) else TRANSFER) + 1
        begin = perf_counter_ns()
        try:
            result = original(tensor, *args, **kwargs)
        except BaseException as error:
            guard.show(error, error.__traceback__.tb_next)
            raise
        finally:
            if own:
                clock.words[W_WITHIN] = clock.within
        try:
            on = _is_cuda(tensor)
            if type(result) not in _plain or on is not _is_cuda(result):
                copied(what, on, begin, _getframe(1))
        except BaseException as error:
            if guard.foreign(error, what):
                raise
        return result

    return copy


def copied(what, on, begin, frame):
    end = perf_counter_ns()
    if on:
        seen("to-cpu" if what == "to" else what, True, begin, end, frame)
    elif clock.coasting and get_ident() == clock.thread:
        # As `clock.span`, without the way there: a steady step has some of these.
        clock.log.extend((begin * 8 + BEGUN, end * 8 + TRANSFER))
    elif get_ident() == clock.thread:
        clock.span(TRANSFER, begin, end)


# The prints and waits under way on the training thread: when each began.
_begun = []


def printing(tensor):
    global _inside
    if not _inside and not guard.off and get_ident() == clock.thread and type(tensor) in _plain and not _mode_enabled():
        if _is_cuda(tensor):
            _inside = True
            _begun.append((id(tensor), perf_counter_ns()))


def printed(tensor, text):
    global _inside
    if _begun and _begun[-1][0] == id(tensor) and get_ident() == clock.thread:
        _inside = False
        told("print", _begun.pop()[1], _getframe(1))
    return text


def not_printed(tensor):
    printed(tensor, None)


def waiting(thing=None):
    if not guard.off and get_ident() == clock.thread:
        clock.words[W_WITHIN] = SYNC + 1
        _begun.append((id(thing), perf_counter_ns()))


def waited(*thing_and_result):
    stopped(thing_and_result[0] if len(thing_and_result) > 1 else None)
    return thing_and_result[-1]


def stopped(thing=None):
    if _begun and _begun[-1][0] == id(thing) and get_ident() == clock.thread:
        told("synchronize", _begun.pop()[1], _getframe(1))


@guard.quietly
def told(what, begin, frame):
    clock.words[W_WITHIN] = clock.within
    seen(what, True, begin, perf_counter_ns(), frame)


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
