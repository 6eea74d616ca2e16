"""Gradients set to none instead of filled with zeros. The same training only where every parameter gets a gradient at every step: one
without would be left out by the optimizer, which else applies its momentum and weight decay."""

from _flatout_probe.patches import optimizer, zeroing

_touched, _hooks, _missed, _steps = set(), [], False, 0
# Steps at which every parameter must have got its gradient.
ENOUGH = 4


def parameters():
    return [one for each in optimizer.known() for group in each.param_groups for one in group["params"] if one.requires_grad]


def stepped():
    """After a step, while the program warms up."""
    global _missed, _steps
    if not zeroing.fills:
        return
    if not _hooks:
        for one in parameters():
            if not hasattr(one, "register_post_accumulate_grad_hook"):
                return
            _hooks.append(one.register_post_accumulate_grad_hook(touch))
        return
    _missed |= len(_touched) < len(_hooks)
    _touched.clear()
    _steps += 1


def touch(parameter):
    _touched.add(id(parameter))


def done():
    for hook in _hooks:
        hook.remove()


def switch(torch):
    if not zeroing.fills or _missed or _steps < ENOUGH:
        return None
    cls = torch.optim.Optimizer
    original = cls.zero_grad

    def zero_grad(self, set_to_none=True):
        return original(self, True)

    zero_grad.__wrapped__ = original

    def turn(on):
        cls.zero_grad = zero_grad if on else original

    return turn
