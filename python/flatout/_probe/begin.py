"""Starts the probe once torch is there."""

import os

from . import clock, coast, guard, places, profile
from .patches import amp, checkpoint, compiled, environment, evaluation, garbage, loader, memory, optimizer, sync, worker

PATCHES = [loader, worker, optimizer, sync, evaluation, checkpoint, amp, compiled, environment, garbage, memory]


@guard.quietly
def start(torch):
    from . import settings, trial

    places.learn(torch)
    # Both are constants to a compiler; the first is quicker to ask where it exists.
    compiler = getattr(torch, "compiler", None)
    compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None)
    guard.compiling = compiling or guard.compiling
    for patch in PATCHES:
        patch.install(torch)
    settings.install(torch)
    profile.install(torch)
    trial.install(torch)
    os.register_at_fork(after_in_child=forked)


@guard.quietly
def compiler(module):
    compiled.hide(module)


@guard.quietly
def safetensors(module):
    checkpoint.install_safetensors(module)


@guard.quietly
def checkpoints(module):
    checkpoint.install_distributed(module)


@guard.quietly
def forked():
    clock.after_fork()
    coast.after_fork()
    profile.after_fork()
    for patch in PATCHES:
        if hasattr(patch, "after_fork"):
            patch.after_fork()
