"""Whether workers that begin without a fork could begin: they run the program's main module once more and unpickle the data set. Read from
code and types; nothing of the program runs.
"""

from __future__ import annotations

import functools
import sys
import types
from itertools import islice

from . import raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Objects that are looked at.
MOST = 500
LONG = 50


def can_spawn(*things: Any) -> bool:
    """Whether nothing is known that would keep such workers from beginning."""
    return is_guarded() and not any(map(is_local, things))


def is_guarded() -> bool:
    """Whether the main module has an `if __name__ == "__main__"`; so do those that are started by another program (`python -m`, a console script)."""
    frame, outermost = sys._getframe(), None
    while frame is not None:
        if frame.f_globals.get("__name__") == "__main__" and frame.f_code.co_name == "<module>":
            outermost = frame.f_code
        frame = frame.f_back
    return outermost is not None and "__name__" in outermost.co_names and "__main__" in outermost.co_consts


def is_local(thing: Any) -> bool:
    """Whether it holds a lambda, or a function or class that a function made: those cannot be pickled."""
    left, seen = [thing], set()
    while left and len(seen) < MOST:
        one = left.pop()
        kind = type(one)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if kind is types.FunctionType:
            if "<" in one.__qualname__:
                return True
        elif kind is types.MethodType:
            left.append(one.__self__)
        elif kind is functools.partial:
            left += [one.func, *one.args]
        elif kind in (list, tuple):
            left += one[:LONG]
        elif kind is dict:
            left += islice(one.values(), LONG)
        elif not raw.is_tensor(one) and type.__getattribute__(kind, "__module__") not in ("builtins", "numpy"):
            if "<locals>" in type.__getattribute__(kind, "__qualname__"):
                return True
            left += islice(raw.fields(one).values(), LONG)
    return False
