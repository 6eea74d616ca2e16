"""Starts what changes the program; the probe calls it, only if the user asked for a change."""

import os

from . import settings
from .trials import trial


def prepare():
    """Before the probe's patches."""
    settings.learn()


def install(torch):
    """After them."""
    settings.install(torch)
    trial.install(torch)


def watch(torch):
    """Once all else is in its place."""
    if os.environ.get("FLATOUT_AUTO"):
        from . import auto

        auto.install(torch)
