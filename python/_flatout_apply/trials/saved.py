"""Files of a trial that are opened below Python: the functions that do so get the path that the trial has in the place of the program's."""

from __future__ import annotations

import os
import sys

from _flatout_probe import clock, guard

from . import overlay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# What opens its file below Python: the argument that says where, its position, and whether it is written. Programs bind the
# names of safetensors' own functions early; those call these.
BELOW = [
    ("torch", "save", "f", 1, True),
    ("torch", "load", "f", 0, False),
    ("torch.jit", "save", "f", 1, True),
    ("torch.jit", "load", "f", 0, False),
    ("safetensors.torch", "serialize_file", "filename", 1, True),
    ("safetensors.torch", "safe_open", "filename", 0, False),
]


def install() -> None:
    redirect()
    clock.after_step.append(redirect)


def redirect(now: int | None = None) -> None:
    """After each step: a module may be imported at any time."""
    for one in list(BELOW):
        module = sys.modules.get(one[0])
        if module is not None and one[1] in vars(module):
            BELOW.remove(one)
            setattr(module, one[1], moved(vars(module)[one[1]], *one[2:]))


def moved(original: Callable[..., Any], name: str, position: int, writes: bool) -> Callable[..., Any]:
    """The function with the path that the trial has in the place of the program's; whatever is no path stays."""
    place = overlay.target if writes else overlay.shown

    @guard.like(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > position and isinstance(args[position], (str, os.PathLike)):
            args = args[:position] + (place(args[position]),) + args[position + 1 :]
        elif isinstance(kwargs.get(name), (str, os.PathLike)):
            kwargs[name] = place(kwargs[name])
        return original(*args, **kwargs)

    return function
