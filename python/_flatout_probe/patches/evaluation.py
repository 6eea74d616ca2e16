"""Evaluation: from `model.eval()` to `model.train()`, or a loop over a loader with gradients switched off.

`eval()` alone proves nothing (a frozen teacher, batch norms kept in eval mode while training), so a stretch counts only
once batches come without gradients, or `train()` comes back before an optimizer step does.
"""

from .. import clock, guard, places
from ..weave import weave
from ..ring import W_EVAL_BATCHES

# Time is being charged to `eval`.
active = False
# `eval()` was called: the sums at that moment, to give the time to `eval` once it is known to have been one.
pending = None
_begun = 0
_batches = 0
_place = None
_by_mode = False
# The module whose mode is being set, by its id.
_within = 0
# A step came after `eval()` without `train()`: in this program `eval()` alone says nothing.
_in_vain = False
# A step has been done: before the first one no loader can be told from another.
_trained = False


def install(torch):
    # `eval()` is `train(False)`.
    weave(torch.nn.Module.train, ("self", "mode"), enter=entering, leave=train_done, fail=forget, traced=True)
    clock.enders.append(program_ended)


def entering(module, mode):
    """The children's own `train` within it is no news."""
    global _within
    if not _within and not guard.off and clock.get_ident() == clock.thread:
        _within = id(module)


def forget(module, mode):
    global _within
    if _within == id(module) and clock.get_ident() == clock.thread:
        _within = 0


def train_done(module, mode, result):
    global _within
    if _within == id(module) and clock.get_ident() == clock.thread:
        _within = 0
        if mode:
            _returned()
        else:
            _asked()
    return result


@guard.quietly
def _asked():
    global pending, _place
    if not active and pending is None:
        clock.attention = True
        pending = clock.sums()
        _place = places.user_place(2)
        if _trained and not _in_vain:
            clock.presume(clock.EVAL)


@guard.quietly
def _returned():
    if active:
        finish()
    elif pending is not None:
        confirm()
        finish()


def confirm():
    """Batches come without gradients: what began with `eval()`, or begins now, is an evaluation."""
    global active, pending, _begun, _batches, _by_mode, _place
    if active:
        return
    _by_mode = pending is not None
    before = pending or clock.sums()
    if not _by_mode:
        _place = places.user_place(3)
    _begun = before[clock.EVAL]
    _batches = clock.words[W_EVAL_BATCHES]
    clock.move(before, clock.EVAL)
    pending, active = None, True
    clock.attention = True
    clock.base = clock.EVAL
    clock.presume(None)
    clock.switch(clock.EVAL)


def finish():
    """The evaluation is over: training goes on, or something else begins."""
    global active, pending
    spent = clock.sums()[clock.EVAL] - _begun
    batches = clock.words[W_EVAL_BATCHES] - _batches
    active, pending = False, None
    clock.attention = True
    clock.base = clock.OTHER
    if clock.phase == clock.EVAL:
        clock.switch(clock.OTHER)
    if spent > 0:
        clock.event("eval", duration_ms=spent / 1e6, batches=batches, place=_place)


def loader_ended():
    """A loader of the evaluation is exhausted. Without `eval()` nothing else will tell the end."""
    if active and not _by_mode:
        finish()
    elif active:
        clock.switch(clock.EVAL)
    else:
        clock.switch(clock.base)


def program_ended():
    if active:
        finish()


def asked(state):
    """`eval()` was called, and this batch is of a loader that never fed a step."""
    return state is not None and not state[0].feeds and _trained


def step_came():
    """An optimizer step: whatever `eval()` meant, it is training now."""
    global pending, _trained, _in_vain
    _trained = True
    if pending is not None:
        _in_vain = True
        clock.presume(None)
    if active:
        finish()
        clock.base = clock.COMPUTE
        clock.switch(clock.COMPUTE)
    pending = None


def after_fork():
    global active, pending, _within, _trained, _in_vain
    active, pending, _within, _trained, _in_vain = False, None, 0, False, False
