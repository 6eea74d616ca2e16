"""flatout inside a training program. Under `flatout run` these write to the record; elsewhere `gpu_utilization` and `gpu_status` ask the driver,
and the others do nothing.

>>> import flatout
>>> with flatout.phase("data"):
...     batch = next_batch()
>>> flatout.step(samples=len(batch))
"""

from __future__ import annotations

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["gpu_status", "gpu_utilization", "phase", "step"]


def _clock() -> Any:
    """The probe's clock, when `flatout run` put it here and it works."""
    clock: Any = sys.modules.get("_flatout_probe.clock")
    if clock is None:
        import os

        if not os.environ.get("FLATOUT_RING"):
            return None
        try:
            from _flatout_probe import clock as probe_clock

            clock = probe_clock
            os.register_at_fork(after_in_child=clock.after_fork)
            if os.environ.get("FLATOUT_TRIAL"):
                from _flatout_apply.trials import trial

                trial.install()
        except Exception:
            return None
    from _flatout_probe import guard

    return None if guard.off else clock


def step(samples: int | None = None) -> None:
    """Marks the end of a training step, for loops whose optimizer is not PyTorch's."""
    clock = _clock()
    if clock is None or not clock.mine():
        return
    try:
        if samples:
            clock.batch_samples += int(samples)
        clock.step_ended()
    except Exception as error:
        from _flatout_probe import guard

        guard.failed(error, "flatout.step")


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Counts the time inside as this phase: data, transfer, compute, sync, eval, checkpoint or other."""
    clock = _clock()
    number = getattr(clock, name.upper(), None) if clock is not None and name.isalpha() else None
    if type(number) is not int or number > 6 or not clock.mine():
        yield
        return
    back = clock.here()
    clock.switch(number)
    try:
        yield
    finally:
        clock.switch(back)


def gpu_utilization() -> float | None:
    """The GPU's utilization, 0 to 1, as `flatout run` last read it, or as the driver reports it; None if it is not known."""
    clock = _clock()
    value = clock.words[24] if clock is not None else 0
    if value:
        return float((value - 1) / 1e6)
    from . import _nvml

    return _nvml.utilization()


def gpu_status(label: object = "") -> None:
    """Prints one line about the GPU now and, under `flatout run`, leaves a note in the record."""
    clock = _clock()
    utilization = gpu_utilization()
    parts = ["GPU %.0f%%" % (utilization * 100) if utilization is not None else "GPU unknown"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        parts.append("%.2f GiB" % (torch.cuda.memory_allocated() / 2**30))
    text = " ".join([str(label) + ":"] + parts) if label else " ".join(parts)
    print(text, file=sys.stderr, flush=True)
    if clock is not None:
        clock.begin()
        clock.note("program", text)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext flatout` in a notebook: `%%flatout` records a cell."""
    from . import _notebook

    _notebook.load(shell)
