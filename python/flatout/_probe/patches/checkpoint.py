"""Checkpoints: the time within torch.save and its kin, and how much was written."""

import os
from time import perf_counter_ns

from .. import clock, guard, places

_inside = False


def install(torch):
    torch.save = timed(torch.save, 1)


def install_safetensors(module):
    module.save_file = timed(module.save_file, 1)
    if hasattr(module, "save_model"):
        module.save_model = timed(module.save_model, 1)


def install_distributed(module):
    module.save = timed(module.save, None)


def timed(original, target_at):
    @guard.like(original)
    def save(*args, **kwargs):
        global _inside
        if guard.off or _inside or not clock.mine():
            return original(*args, **kwargs)
        _inside = True
        back = clock.phase
        begin = clock.switch(clock.CHECKPOINT)
        try:
            return original(*args, **kwargs)
        finally:
            _inside = False
            ended(back, begin, args[target_at] if target_at is not None and len(args) > target_at else kwargs.get("f"))

    return save


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
