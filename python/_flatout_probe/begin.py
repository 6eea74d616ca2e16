"""Starts the probe once torch is there."""

import os

from . import clock, coast, guard, places, profile, raw, settings, trial, weave, windows
from .patches import amp, checkpoint, compiled, debug, environment, evaluation, garbage, loader, memory, optimizer, sync, worker

PATCHES = [loader, worker, optimizer, sync, evaluation, checkpoint, amp, compiled, environment, debug, garbage, memory]


@guard.quietly
def start(torch):
    places.learn(torch)
    raw.learn(torch)
    settings.learn()
    # Both are constants to a compiler; the first is quicker to ask where it exists.
    compiler = getattr(torch, "compiler", None)
    compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None)
    guard.compiling = compiling or guard.compiling
    for patch in PATCHES:
        patch.install(torch)
    settings.install(torch)
    profile.install(torch)
    trial.install(torch)
    windows.install(torch)
    weave.done()
    compiled.hide(torch)
    os.register_at_fork(after_in_child=forked)


def imports_later():
    """Whether modules of the probe are imported after the start: the settings of `--apply` and the trials of `flatout tune` are."""
    return bool(os.environ.get("FLATOUT_APPLY") or os.environ.get("FLATOUT_TRIAL"))


@guard.quietly
def forked():
    clock.after_fork()
    coast.after_fork()
    profile.after_fork()
    windows.after_fork()
    for patch in PATCHES:
        if hasattr(patch, "after_fork"):
            patch.after_fork()
