"""Where `_flatout_apply` takes part, if the user asked for a change. Nothing here is filled in otherwise, and the probe only observes."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Called when a batch has come, and before an optimizer's step.
on_batch: list[Callable[[], object]] = []
on_optimizer: list[Callable[[], object]] = []
# Called with an optimizer and its defaults before it is made, and with it afterwards.
optimizer_defaults: Callable[[Any, dict[str, Any]], object] | None = None
optimizer_made: Callable[[Any], object] | None = None
# Training batches are cut to their first samples, or repeated so many times; 0 and 1 leave them whole. Only a trial of
# `flatout tune` does so.
first_samples = 0
repeated = 1
# Each loader's batch that is given again and again, by the loader's number, so that its workers rest; None while nothing is held.
held: dict[int | None, Any] | None = None
# A loader whose batches come from an iterator of our own instead: its entry and that iterator; None while each gives its own.
fed: tuple[Any, Any] | None = None


def wanted() -> bool:
    """Whether something is to be changed: modules of `_flatout_apply` are imported then, also after the start."""
    return any(os.environ.get("FLATOUT_" + name) for name in ("APPLY", "TRIAL", "AUTO"))


def in_trial() -> bool:
    """Whether this is a trial of `flatout tune`, which may change what the program does."""
    return bool(os.environ.get("FLATOUT_TRIAL"))
