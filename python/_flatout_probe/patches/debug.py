"""Debugging aids that cost time when they are left on: anomaly detection, blocking launches, deterministic algorithms."""

import os

from .. import clock
from ..ring import W_STEPS
from .environment import tell

_torch = None


def install(torch):
    global _torch
    _torch = torch
    clock.flushers.append(flush)


def flush(last=False):
    if clock.words[W_STEPS] == 0:
        return
    tell("debug.anomaly", bool(_torch.is_anomaly_enabled()))
    tell("debug.deterministic", bool(_torch.are_deterministic_algorithms_enabled()))
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        tell("debug.launch_blocking", True)
