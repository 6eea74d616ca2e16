"""`flatout run --apply`: settings put in force at run time, without an edit. What could not be applied is told, with a reason."""

import os

from . import clock, guard
from .known import KNOWN, LOADER  # noqa: F401 (apply.py reads it here)

values = {}
# Called when a batch has come, and before an optimizer's step.
on_batch = []
on_optimizer = []
_told = set()


def parse(text):
    """`a=1,b=on` as a dictionary; numbers and on/off are read as such."""
    found = {}
    for part in (text or "").split(","):
        key, mark, value = part.strip().partition("=")
        if mark:
            found[key.strip()] = read(value.strip())
    return found


def read(value):
    switches = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
    if value.lower() in switches:
        return switches[value.lower()]
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            pass
    return value


def told(key, reason=None):
    """Applied, or not and why; once each."""
    if (key, reason) not in _told:
        _told.add((key, reason))
        clock.fact("apply." + key, reason is None if reason is None else reason)


def tell_children(**variables):
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def in_trial():
    """Whether this is a trial of `flatout tune`, which may change what the program does."""
    return bool(os.environ.get("FLATOUT_TRIAL"))


def learn():
    values.update(parse(os.environ.get("FLATOUT_APPLY")))


def install(torch):
    if not values:
        return
    for key in values:
        if key not in KNOWN:
            told(key, "unknown-setting")
    from . import apply
    from .patches import optimizer

    apply.install(torch)
    if on_optimizer:
        optimizer.before_steps(on_optimizer)


def changes_loaders():
    return any(key.startswith("loader.") or key == "padding.trim" for key in values)


def loader_arguments(original, loader, args, kwargs):
    if not changes_loaders():
        return args, kwargs
    try:
        from . import apply

        return apply.loader_arguments(original, loader, args, kwargs)
    except BaseException as error:
        if guard.foreign(error, "apply"):
            raise
        return args, kwargs


def optimizer_defaults(optimizer, defaults):
    if "optimizer.fused" in values or "optimizer.foreach" in values:
        try:
            from . import apply

            apply.optimizer_defaults(optimizer, defaults)
        except BaseException as error:
            if guard.foreign(error, "apply"):
                raise


def optimizer_made(optimizer):
    if "step.accumulation" in values or "optimizer.lr_scale" in values:
        try:
            from . import accumulate, apply

            apply.scale_learning_rate(optimizer)
            accumulate.optimizer_made(optimizer)
        except BaseException as error:
            if guard.foreign(error, "apply"):
                raise
