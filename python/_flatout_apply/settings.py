"""`flatout run --apply`: settings put in force at run time, without an edit. What could not be applied is told, with a reason."""

import os

from _flatout_probe import clock, extension, guard

from .known import KNOWN, LOADER  # noqa: F401 (apply.py reads it here)

values = {}
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


def learn():
    values.update(parse(os.environ.get("FLATOUT_APPLY")))


def install(torch):
    if not values:
        return
    extension.optimizer_defaults, extension.optimizer_made = optimizer_defaults, optimizer_made
    if changes_loaders():
        _wrap_init(torch.utils.data.DataLoader)
    if "zero_grad.set_to_none" in values:
        _wrap_zero_grad(torch.optim.Optimizer)
    for key in values:
        if key not in KNOWN:
            told(key, "unknown-setting")
    from . import apply
    from _flatout_probe.patches import optimizer

    apply.install(torch)
    if extension.on_optimizer:
        optimizer.before_steps(extension.on_optimizer)


def _wrap_init(cls):
    """The settings of `--apply` take the place of the program's arguments."""
    original = cls.__init__

    @guard.like(original)
    def __init__(self, *args, **kwargs):
        if not guard.off:
            args, kwargs = loader_arguments(original, self, args, kwargs)
        original(self, *args, **kwargs)

    cls.__init__ = __init__


def _wrap_zero_grad(cls):
    """The setting of `--apply` takes the place of the program's argument."""
    original = cls.zero_grad

    @guard.like(original)
    def zero_grad(self, set_to_none=True):
        return original(self, set_to_none if guard.off else values["zero_grad.set_to_none"])

    cls.zero_grad = zero_grad


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
