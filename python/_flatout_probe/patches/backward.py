"""Steps of loops without a torch optimizer: hand-written updates, optimizers of other libraries. There a step ends with `backward()`.

With a DataLoader the first `backward()` after a batch counts. Without one, the line that calls it first counts, so that a penalty's
gradient or a second model does not make two steps of one. As soon as a torch optimizer steps, the hook is taken out.
"""

import threading

from .. import clock, guard, places, raw
from ..ring import W_BATCHES, W_STEPS
from ..weave import weave
from . import environment, optimizer

# A program that has made a torch optimizer will step it: only after this many calls without a step it is taken to be without one.
PATIENCE = 500

_woven = None
_calls = 0
# The user's line that calls it: its code (so that the id stays its own) and the instruction.
_site = None
_depth = threading.local()
_counts = True
# Called when the outermost `backward()` begins and ends.
_watchers = None


def install(torch):
    global _woven
    from torch.autograd import graph

    function = getattr(graph, "_engine_run_backward", None)
    if function is not None:
        _woven = weave(function, ("t_outputs",), enter=entered, leave=left, fail=failed)
        optimizer.before_first_step.append(rest)


def rest():
    """A torch optimizer steps: it tells the steps."""
    global _counts
    _counts = False
    if _woven is not None and _watchers is None:
        _woven.rest()


def watch(began, ended):
    """Calls these when the outermost `backward()` begins and ends."""
    global _watchers
    if _woven is not None and _watchers is None:
        _watchers = began, ended
        _woven.wake()


def entered(outputs):
    _depth.value = depth = getattr(_depth, "value", 0) + 1
    if _watchers is not None and depth == 1:
        _watchers[0]()


def failed(outputs):
    _depth.value = depth = getattr(_depth, "value", 1) - 1
    if _watchers is not None and depth <= 0:
        _watchers[1]()


def left(outputs, result):
    _depth.value = depth = getattr(_depth, "value", 1) - 1
    # Inside another one it recomputes a checkpointed part.
    if depth <= 0:
        if _watchers is not None:
            _watchers[1]()
        if _counts and not guard.off:
            count(outputs)
    return result


@guard.quietly
def count(outputs):
    global _calls, _site
    if clock.get_ident() != clock.thread:
        clock.rebind_thread()
        if clock.get_ident() != clock.thread:
            return
    clock.here()
    _calls += 1
    if optimizer.known() and _calls < PATIENCE:
        return
    if clock.words[W_BATCHES]:
        if not clock.fed:
            return
    elif not is_first_line():
        return
    if not clock.words[W_STEPS]:
        describe(outputs)
    optimizer.look()
    # What follows is the update of the parameters: it belongs to the step, not to the time until the next batch.
    clock.fed = clock.again = False
    clock.step_ended()


def is_first_line():
    """Whether the line that called it first calls it again."""
    global _site
    frame = places.calling_frame(3)
    if frame is None:
        return False
    here = frame.f_code, frame.f_lasti
    if _site is None:
        _site = here
    return here[0] is _site[0] and here[1] == _site[1]


def describe(outputs):
    clock.fact("steps.from", "backward", None, places.user_place(3))
    with raw.without_functions():
        found = next(raw.tensors(outputs), None)
        if found is not None:
            environment.tell("model.device", found.device.type)


def after_fork():
    global _calls, _site
    _calls, _site = 0, None
