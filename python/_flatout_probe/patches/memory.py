"""Out of memory: the error that ended the program, with its line, as Python keeps it for debuggers."""

import atexit
import sys

from .. import clock, guard, places

# Only these: the text of an error of the program's own class is its own code.
_kinds = ()


def install(torch):
    global _kinds
    _kinds = (RuntimeError, MemoryError, torch.cuda.OutOfMemoryError, getattr(torch, "AcceleratorError", MemoryError))
    clock._registered.append(True)
    atexit.register(program_ended)


def program_ended():
    tell()
    clock.ended()


@guard.quietly
def tell():
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if type(error) not in _kinds:
        return
    text = str(error)
    if type(error).__name__ not in ("OutOfMemoryError", "MemoryError") and "out of memory" not in text and "can't allocate memory" not in text:
        return
    place, trace = None, error.__traceback__
    while trace is not None:
        if places.kind_of(trace.tb_frame.f_code) == places.USER:
            place = {"file": trace.tb_frame.f_code.co_filename, "line": trace.tb_lineno}
        trace = trace.tb_next
    clock.event("out-of-memory", message=text[:600], place=place)
    clock.begin()
