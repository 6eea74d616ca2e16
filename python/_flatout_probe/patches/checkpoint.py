"""Checkpoints: the time within torch.save and its kin, and how much was written."""

import os
import sys
from time import perf_counter_ns

from .. import clock, guard, places
from ..weave import weave

# The save under way: the phase before it, and when it began.
_inside = None
# Functions of modules that the program may import later, looked for at each flush, and the argument that says where.
LATER = [
    ("safetensors.torch", "save_file", "filename"),
    ("safetensors.torch", "save_model", "filename"),
    ("torch.distributed.checkpoint.state_dict_saver", "save", None),
]


def install(torch):
    follow(torch, "save", "f")
    clock.flushers.append(flush)


def flush(last=False):
    for one in list(LATER):
        module = sys.modules.get(one[0])
        if module is not None and one[1] in vars(module):
            LATER.remove(one)
            follow(module, *one[1:])


def follow(module, name, target):
    weave(vars(module)[name], (target,) if target else (), enter=begin, leave=saved, fail=failed)


def begin(target=None):
    global _inside
    if _inside is None and not guard.off and clock.mine():
        try:
            back = clock.here()
            _inside = back, clock.switch(clock.CHECKPOINT), sys._getframe(1)
        except BaseException as error:
            if guard.foreign(error, "save"):
                raise


def saved(*target_and_result):
    end(target_and_result[0] if len(target_and_result) > 1 else None)
    return target_and_result[-1]


def failed(target=None):
    end(target)


def end(target):
    global _inside
    # A save within a save is a part of it.
    if _inside is not None and clock.mine() and _inside[2] is sys._getframe(2):
        (back, begun, _), _inside = _inside, None
        ended(back, begun, target)


@guard.quietly
def ended(back, begin, target):
    end = clock.switch(back)
    clock.event("checkpoint", duration_ms=(end - begin) / 1e6, bytes=size(target), place=places.user_place(2))
    if end >= clock.next_flush or perf_counter_ns() >= clock.next_flush:
        clock.flush(end)


def size(target):
    try:
        if type(target) in (str, bytes) or type(target).__module__.partition(".")[0] == "pathlib":
            return os.path.getsize(target)
        return target.tell() if type(target).__module__ == "_io" else None
    except Exception:
        return None


def after_fork():
    global _inside
    _inside = None
