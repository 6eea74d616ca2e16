"""Starts the probe once torch is there."""

import os

from . import arithmetic, clock, coast, contents, extension, guard, places, profile, raw, weave, windows
from .patches import amp, backward, checkpoint, collectives, compiled, debug, environment, evaluation, garbage, loader, memory, optimizer, recompute, sync, worker

PATCHES = [loader, worker, optimizer, backward, sync, evaluation, checkpoint, amp, compiled, environment, debug, garbage, memory, recompute, collectives]


@guard.quietly
def start(torch):
    places.learn(torch)
    raw.learn(torch)
    changes = None
    if extension.wanted():
        from _flatout_apply import begin as changes

        changes.prepare()
    # Both are constants to a compiler; the first is quicker to ask where it exists.
    compiler = getattr(torch, "compiler", None)
    compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None)
    guard.compiling = compiling or guard.compiling
    for patch in PATCHES:
        patch.install(torch)
    if changes is not None:
        changes.install(torch)
    profile.install(torch)
    windows.install(torch)
    contents.install(torch)
    arithmetic.install(torch)
    if changes is not None:
        changes.watch(torch)
    weave.done()
    compiled.hide(torch)
    os.register_at_fork(after_in_child=forked)


@guard.quietly
def forked():
    clock.after_fork()
    coast.after_fork()
    profile.after_fork()
    windows.after_fork()
    arithmetic.after_fork()
    for patch in PATCHES:
        if hasattr(patch, "after_fork"):
            patch.after_fork()
