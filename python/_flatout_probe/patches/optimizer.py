"""Steps, from the optimizers' global hooks; and which optimizer it is."""

import weakref
from time import perf_counter_ns

from .. import clock, coast, device, extension, guard, late, places, raw
from ..weave import weave
from . import evaluation, loader, zeroing

# By the optimizer's id: a reference to it, its number and the line that made it.
_known = {}
_primary = 0
_others = 0
_count = 0
_told = 0
_place = None
# Called once, when the first optimizer steps.
before_first_step = []
_described = _described_at = 0


def install(torch):
    from torch.optim import optimizer

    def after(self):
        if guard.off:
            return
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
        except BaseException as error:
            if guard.foreign(error, "step"):
                raise

    hook = coast.hook_of_step(after)
    # Classes whose optimizers were made before have the wrapper of then.
    if late.active or weave(optimizer.Optimizer.profile_hook_step, leave=hook, inside="wrapper", traced=True) is None:
        optimizer.register_optimizer_step_post_hook(_outside(hook, guard.compiling))
    weave(optimizer.Optimizer.__init__, ("self", "defaults"), enter=making, leave=made)
    clock.flushers.append(flush)
    zeroing.install(torch, optimizer.Optimizer)


def flush(last=False):
    """How many were made, each time that it doubled, with the line that made the last one."""
    global _told
    if _count >= 2 and (_count >= 2 * _told or last and _count != _told):
        _told = _count
        clock.fact("optimizer.made", _count, None, _place)


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
        except BaseException as error:
            if guard.foreign(error, "apply"):
                raise
        return None

    optimizer.register_optimizer_step_pre_hook(before)


def _after(self):
    global _primary, _others
    if clock.get_ident() != clock.thread:
        clock.rebind_thread()
        if clock.get_ident() != clock.thread:
            return
    if before_first_step:
        for function in before_first_step:
            function()
        before_first_step.clear()
    look()
    number = id(self)
    if number != _primary:
        # With several optimizers (a GAN) a step is a round of the first; if that one rests or is gone, another takes its place.
        _others += 1
        if _primary and _others <= 3 and lives(_primary):
            if clock.again:
                clock.switch(clock.phase)
                clock.rest()
            return
        _primary = number
        if describes():
            describe(self)
    _others = 0
    clock.step_ended()


def lives(number):
    entry = _known.get(number)
    return entry is None or entry[0]() is not None


def describes():
    """Whether a new optimizer is worth describing: looking for its model takes time, and a program may make one for every step."""
    global _described, _described_at
    now = perf_counter_ns()
    if _described >= 3 and now - _described_at < 10_000_000_000:
        return False
    _described, _described_at = _described + 1, now
    return True


def look():
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


def _outside(hook, compiling):
    """As a hook that torch calls itself. While the compiler traces a step it must find nothing here to trace."""

    def after(self, args, kwargs):
        if not compiling():
            hook(self, None)

    return after


def making(self, defaults):
    if not guard.off and extension.optimizer_defaults is not None:
        extension.optimizer_defaults(self, defaults)


def made(self, defaults, nothing):
    if not guard.off:
        remember(self)
        if extension.optimizer_made is not None:
            extension.optimizer_made(self)
    return nothing


def known():
    """Optimizers that live."""
    return [one for one in [entry[0]() for entry in list(_known.values())] if one is not None]


@guard.quietly
def remember(self):
    global _count, _place
    clock.here()
    _place = places.user_place(2)
    for key in [key for key, entry in list(_known.items()) if entry[0]() is None]:
        _known.pop(key, None)
    _known[id(self)] = weakref.ref(self), _count, _place
    _count += 1


@guard.quietly
def describe(self):
    from . import environment

    reference, number, place = _known.get(id(self), (None, _count, None))
    if reference is not None and reference() is not self:
        number, place = _count, None
    scope = "optimizer.%d" % number
    groups, parameters = raw.optimized(self)
    group = groups[0] if groups else {}
    clock.fact("optimizer.class", raw.name_of(type(self)), scope, place)
    for key in ("fused", "foreach", "capturable"):
        if key in group and (group[key] is None or type(group[key]) is bool):
            clock.fact("optimizer." + key, group[key], scope, place)
    clock.fact("optimizer.lr", float(group["lr"]) if type(group.get("lr")) in (int, float) else None, scope, place)
    environment.describe_training(parameters)


def after_fork():
    global _primary
    _primary = 0
