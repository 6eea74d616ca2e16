"""Patches that can never break the program: a fault inside the probe turns all of it off, and the record says so."""

import contextlib
import functools

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
        except Exception as error:
            failed(error, function.__name__)
            return None

    return inner
