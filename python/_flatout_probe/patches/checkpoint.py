"""Checkpoints: the time within torch.save and its kin, and how much was written."""

import os
import sys
from time import perf_counter_ns

from .. import clock, guard, places

_inside = False
# During a trial: the folder that takes what the program would write over its own files.
elsewhere = None


# Functions of modules that the program may import later, looked for at each flush.
LATER = [
    ("safetensors.torch", "save_file", 1),
    ("safetensors.torch", "save_model", 1),
    ("torch.distributed.checkpoint.state_dict_saver", "save", None),
]


def install(torch):
    torch.save = timed(torch.save, 1)
    clock.flushers.append(flush)


def flush(last=False):
    for one in list(LATER):
        module, name, target_at = one
        function = vars(sys.modules[module]).get(name) if module in sys.modules else None
        if function is not None:
            LATER.remove(one)
            setattr(sys.modules[module], name, timed(function, target_at))


def timed(original, target_at):
    @guard.like(original)
    def save(*args, **kwargs):
        global _inside
        if guard.off or _inside or not clock.mine():
            return original(*args, **kwargs)
        _inside = True
        if elsewhere is not None:
            args, kwargs = redirected(args, kwargs, target_at)
        back = clock.here()
        begin = clock.switch(clock.CHECKPOINT)
        try:
            return original(*args, **kwargs)
        finally:
            _inside = False
            ended(back, begin, args[target_at] if target_at is not None and len(args) > target_at else kwargs.get("f"))

    return save


def redirected(args, kwargs, target_at):
    """The call with a path of the trial's own in the place of the program's; whatever is no path stays."""
    there = os.path.join(elsewhere, "checkpoint")
    if target_at is not None and len(args) > target_at:
        if isinstance(args[target_at], (str, os.PathLike)):
            args = args[:target_at] + (there,) + args[target_at + 1 :]
        return args, kwargs
    for name in ("f", "filename"):
        if isinstance(kwargs.get(name), (str, os.PathLike)):
            kwargs = {**kwargs, name: there}
    return args, kwargs


@guard.quietly
def ended(back, begin, target):
    end = clock.switch(back)
    clock.event("checkpoint", duration_ms=(end - begin) / 1e6, bytes=size(target), place=places.user_place(2))
    if end >= clock.next_flush or perf_counter_ns() >= clock.next_flush:
        clock.flush(end)


def size(target):
    try:
        if isinstance(target, (str, os.PathLike)):
            return os.path.getsize(target)
        return target.tell()
    except Exception:
        return None


def after_fork():
    global _inside
    _inside = False
