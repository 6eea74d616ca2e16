"""Out of memory: the error that ends the program, with its line. The program's own handling stays as it is."""

import sys

from .. import clock, guard, places


def install(torch):
    previous = sys.excepthook

    def hook(kind, error, trace):
        tell(kind, error, trace)
        previous(kind, error, trace)

    sys.excepthook = hook


@guard.quietly
def tell(kind, error, trace):
    text = str(error)
    if kind.__name__ not in ("OutOfMemoryError", "MemoryError") and "out of memory" not in text and "can't allocate memory" not in text:
        return
    place = None
    while trace is not None:
        if places.kind_of(trace.tb_frame.f_code) == places.USER:
            place = {"file": trace.tb_frame.f_code.co_filename, "line": trace.tb_lineno}
        trace = trace.tb_next
    clock.event("out-of-memory", message=text[:600], place=place)
    clock.begin()
