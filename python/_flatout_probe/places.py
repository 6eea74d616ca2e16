"""Which line of the user's own source stands behind a call."""

import os
import sys
import sysconfig

_getframe = sys._getframe
# By the code's id, with the code so that the id stays its own: hashing a code object walks all its constants, each time.
_kinds = {}
OURS, TORCH, LIBRARY, USER = range(4)
_here = os.path.dirname(os.path.abspath(__file__)) + os.sep
_libraries = tuple(
    {os.path.abspath(path) + os.sep for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib", "stdlib", "platstdlib")}
)
_torch = os.sep + "torch" + os.sep
# What is found was made some time ago, anywhere.
unknown = False


def learn(torch):
    """Tells where torch itself lies, so that its frames are passed over."""
    global _torch
    _torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def kind_of(code):
    known = _kinds.get(id(code))
    if known is None:
        file = code.co_filename
        full = file if file.startswith("<") else os.path.abspath(file)
        if file.startswith(("<flatout>", "<frozen")) or full.startswith(_here):
            kind = OURS
        elif full.startswith(_torch):
            kind = TORCH
        elif full.startswith(_libraries) or os.sep + "site-packages" + os.sep in full:
            kind = LIBRARY
        else:
            kind = USER
        if len(_kinds) < 100_000:
            _kinds[id(code)] = kind, code
        return kind
    return known[0]


def calling_frame(depth):
    """The nearest frame outside torch and the probe, as it stands; None when there is none."""
    return outside_torch(_getframe(depth + 1))


def outside_torch(frame):
    while frame is not None and kind_of(frame.f_code) <= TORCH:
        frame = frame.f_back
    return frame


def place_of(frame):
    return {"file": frame.f_code.co_filename, "line": frame.f_lineno or frame.f_code.co_firstlineno} if frame else None


def user_place(depth=1):
    """The nearest line of the user's own files; else the nearest of a library's."""
    if unknown:
        return None
    nearest = frame = calling_frame(depth)
    while frame is not None and kind_of(frame.f_code) != USER:
        frame = frame.f_back
    return place_of(frame or nearest)
