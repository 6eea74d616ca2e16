"""Gradient checkpointing: whether it is used, and where."""

import sys

from .. import clock, guard, places
from ..weave import weave

_woven = None


def install(torch):
    clock.flushers.append(flush)


def flush(last=False):
    """Its module may be imported late."""
    global _woven
    module = sys.modules.get("torch.utils.checkpoint")
    if _woven is None and module is not None:
        _woven = weave(module.checkpoint, ("function",), enter=called) or False


@guard.quietly
def called(function):
    _woven.rest()
    clock.fact("checkpointing.used", True, None, places.user_place(2))
