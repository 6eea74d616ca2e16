"""The changes that `--auto` can make, one file per kind. Each has

key       the setting's name
setting   the name with its value, as `--apply` takes it
expected  the factor on the steps per second that it may give
predicted whether that was computed from what was measured
cost_s    seconds that a trial costs
worth     the least gain that is worth it
settle    steps before it is measured
put()     puts it in force; gives a reason or raises `LeftAlone` where it does not fit
back()    takes it back
failed()  why it no longer works, or None
"""

from ..control import LeftAlone
from . import copies, loader, memory, numbers, steps

__all__ = ["LeftAlone", "candidates", "watch"]
KINDS = [loader, memory, copies, steps, numbers]


def watch():
    """The baseline begins."""
    for kind in KINDS:
        if hasattr(kind, "watch"):
            kind.watch()


def candidates(auto):
    """What may help now, the most promising first; what was tried is not proposed again."""
    found = [one for kind in KINDS for one in kind.propose(auto)]
    return sorted((one for one in found if one.setting not in auto.tried), key=lambda one: -one.expected)
