"""Where `_flatout_apply` takes part, if the user asked for a change. Nothing here is filled in otherwise, and the probe only observes."""

import os

# Called when a batch has come, and before an optimizer's step.
on_batch = []
on_optimizer = []
# Called with an optimizer and its defaults before it is made, and with it afterwards.
optimizer_defaults = None
optimizer_made = None
# Training batches are cut to their first samples, or repeated so many times; 0 and 1 leave them whole. Only a trial of
# `flatout tune` does so.
first_samples = 0
repeated = 1
# Each loader's batch that is given again and again, by the loader's number, so that its workers rest; None while nothing is held.
held = None
# A loader whose batches come from an iterator of our own instead: its entry and that iterator; None while each gives its own.
fed = None


def wanted():
    """Whether something is to be changed: modules of `_flatout_apply` are imported then, also after the start."""
    return any(os.environ.get("FLATOUT_" + name) for name in ("APPLY", "TRIAL", "AUTO"))


def in_trial():
    """Whether this is a trial of `flatout tune`, which may change what the program does."""
    return bool(os.environ.get("FLATOUT_TRIAL"))
