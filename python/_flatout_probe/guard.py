"""Hooks that can never break the program: an error inside the probe turns all of it off, and the record says so."""

import contextlib
import functools
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
# Next to it, what changes programs.
_OURS = ("<flatout>", _here, os.path.join(os.path.dirname(_here), "_flatout_apply"))
off = False
told = []


def compiling():
    """Whether a compiler traces the calling code; replaced by torch's own answer, which the compiler folds to a constant."""
    return False


def failed(error, where):
    """Turns the probe off for good in this process."""
    global off
    if off:
        return
    off = True
    try:
        import traceback

        from . import clock

        lines = traceback.format_exception(type(error), error, error.__traceback__)
        text = "probe turned off in %s: %s" % (where, "".join(lines)[-1500:])
        told.append(text)
        clock.stop()
        clock.note("probe", text)
    except Exception:
        pass


def foreign(error, where):
    """Whether an error that a hook caught is the program's own, and the hook must raise it again. The probe calls nothing of the program's,
    but a signal handler may run at any line of a hook, and Ctrl-C may arrive there. Such an error goes on without the probe's frames.
    Any other turns the probe off."""
    trace = error.__traceback__
    ours = isinstance(error, Exception)
    while ours and trace is not None:
        ours = is_ours(trace.tb_frame.f_code) or not is_users(trace.tb_frame.f_code)
        trace = trace.tb_next
    if ours:
        failed(error, where)
        return False
    trace = error.__traceback__
    while trace is not None and is_ours(trace.tb_frame.f_code):
        trace = trace.tb_next
    show(error, trace)
    return True


def show(error, trace):
    """Gives an error that is being handled another traceback. Before Python 3.11 a bare `raise` takes it from where Python keeps it
    while it is being handled."""
    error.__traceback__ = trace
    if sys.version_info < (3, 11):
        try:
            import ctypes

            interpreter = ctypes.pythonapi
            handled = [ctypes.py_object(part) for part in (type(error), error)]
            # The call takes a reference to each.
            for part in handled:
                interpreter.Py_IncRef(part)
            handled.append(ctypes.py_object(trace) if trace is not None else None)
            if trace is not None:
                interpreter.Py_IncRef(handled[2])
        except Exception:
            return
        interpreter.PyErr_SetExcInfo(*handled)


def is_ours(code):
    return code.co_filename.startswith(_OURS)


def is_users(code):
    from . import places

    return places.kind_of(code) == places.USER


@contextlib.contextmanager
def unseen():
    """What is done meanwhile is our own: neither the settings nor the record know of it."""
    global off
    before, off = off, True
    try:
        yield
    finally:
        off = before


def like(original):
    """Gives a replacement the name, the documentation and the signature of what it replaces."""

    def dress(replacement):
        try:
            functools.update_wrapper(replacement, original)
        except Exception:
            pass
        return replacement

    return dress


def quietly(function):
    """For the probe's own work outside of hot paths: its errors turn the probe off and go no further."""

    @functools.wraps(function)
    def inner(*args, **kwargs):
        if off:
            return None
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if foreign(error, function.__name__):
                raise
            return None

    return inner
