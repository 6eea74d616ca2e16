"""Steps, from the optimizers' global hooks; and which optimizer it is."""

import sys
import weakref

from .. import clock, coast, device, guard, places, settings
from . import evaluation, loader, zeroing

_known = weakref.WeakKeyDictionary()
_primary = 0
_others = 0
_count = 0


def install(torch):
    from torch.optim import optimizer

    def after(self):
        if guard.off:
            return None
        try:
            clock.here()
            if clock.attention or clock.resting >= 0 or id(self) != _primary or _others or clock.get_ident() != clock.thread:
                coast.steady = 0 if evaluation.active or id(self) != _primary else coast.steady
                _after(self)
            else:
                clock.step_ended()
                coast.steady += 1
                if coast.steady >= coast.STEADY and not clock.after_step and not clock.stop_after and not device.waits():
                    loader.may_coast(_primary)
        except Exception as error:
            guard.failed(error, "step")
        return None

    optimizer.register_optimizer_step_post_hook(coast.patched_step(after, guard.compiling))
    _patch_init(optimizer.Optimizer)
    _read_directly(torch, optimizer)
    zeroing.install(torch, optimizer.Optimizer)


def before_steps(functions):
    """Settings that are put in force before a step. Without them nothing of ours runs there."""
    from torch.optim import optimizer

    compiling = guard.compiling

    def before(self, args, kwargs):
        if compiling() or guard.off:
            return None
        try:
            for function in tuple(functions):
                function()
        except Exception as error:
            guard.failed(error, "apply")
        return None

    optimizer.register_optimizer_step_pre_hook(before)


def _after(self):
    global _primary, _others
    if clock.get_ident() != clock.thread:
        clock.rebind_thread()
        if clock.get_ident() != clock.thread:
            return
    _look()
    number = id(self)
    if number != _primary:
        # With several optimizers (a GAN) a step is a round of the first; if that one rests, another takes its place.
        _others += 1
        if _primary and _others <= 3:
            if clock.again:
                clock.switch(clock.phase)
                clock.rest()
            return
        _primary = number
        describe(self)
    _others = 0
    clock.step_ended()


def _look():
    """What changed since the last step."""
    evaluation.step_came()
    if loader.newly_fed:
        for info in loader.newly_fed:
            info.feeds = True
        loader.newly_fed.clear()
    if clock.resting >= 0:
        clock.resume()
    if clock.phase == clock.OTHER and clock.base == clock.OTHER:
        clock.base = clock.COMPUTE
        clock.switch(clock.COMPUTE)
    clock.attention = False


def _read_directly(torch, module):
    """Optimizers read their own step counts, two a parameter: past the probe, which has no use for them."""
    original = getattr(module, "_get_value", None)
    item = getattr(torch._C.TensorBase, "item", None)
    if original is None or item is None:
        return
    compiling, tensor = guard.compiling, torch.Tensor

    @guard.like(original)
    def _get_value(x):
        if compiling() or type(x) is not tensor:
            return original(x)
        return item(x)

    for name, other in list(sys.modules.items()):
        if name.startswith("torch.optim.") and getattr(other, "_get_value", None) is original:
            other._get_value = _get_value


def _patch_init(cls):
    original = cls.__init__

    @guard.like(original)
    def __init__(self, params, defaults):
        if not guard.off:
            settings.optimizer_defaults(self, defaults)
        original(self, params, defaults)
        if not guard.off:
            remember(self)
            settings.optimizer_made(self)

    cls.__init__ = __init__


@guard.quietly
def remember(self):
    global _count
    clock.here()
    _known[self] = (_count, places.user_place(2))
    _count += 1


@guard.quietly
def describe(self):
    from . import environment

    number, place = _known.get(self, (_count, None))
    scope = "optimizer.%d" % number
    group = self.param_groups[0] if self.param_groups else {}
    clock.fact("optimizer.class", type(self).__name__, scope, place)
    for key in ("fused", "foreach", "capturable"):
        if key in group:
            clock.fact("optimizer." + key, group[key], scope, place)
    clock.fact("optimizer.lr", float(group["lr"]) if isinstance(group.get("lr"), (int, float)) else None, scope, place)
    environment.describe_training(self, scope)


def after_fork():
    global _primary
    _primary = 0
