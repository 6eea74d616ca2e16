"""Memory that one step gives free and the next takes again stays with the program. glibc hands large pieces back to the kernel at once,
which empties every page of them again at its first touch: on a CPU that can be half of a step."""

from __future__ import annotations

import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# As malloc.h has them; pieces up to so many bytes are kept.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT = 1 << 30
# What glibc raises its thresholds to by itself, once a program frees pieces of that size.
RAISED_MMAP, RAISED_TRIM = 1 << 25, 1 << 26
# An older glibc refuses more than this for a piece of its own.
KEPT_BY_OLDER = 1 << 25
# A page takes no longer than this: where the kernel's time is more, it is something else's.
LONGEST_S = 10e-6


def keep() -> bool:
    """Whether the C library can do that. Workers that are forked have it from here."""
    import ctypes

    return kept_by(getattr(ctypes.CDLL(None), "mallopt", None))


def kept_by(mallopt: Any) -> bool:
    # Trimming comes second: by itself it would only end glibc's own raising of the other threshold.
    raised = mallopt and any(mallopt(MMAP_THRESHOLD, size) for size in (KEPT, KEPT_BY_OLDER))
    return bool(raised and mallopt(TRIM_THRESHOLD, KEPT))


def give_back() -> None:
    """As it is once glibc has raised its thresholds by itself: once they were set it no longer does so, and those that it begins with would
    hand every batch back to the kernel."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, RAISED_MMAP)
        mallopt(TRIM_THRESHOLD, RAISED_TRIM)


def usage() -> tuple[float, float, int]:
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime, now.ru_stime, now.ru_minflt


def part_on_pages(before: tuple[float, float, int]) -> float:
    """Of this process's CPU time since, the part that went to pages touched for the first time."""
    user, kernel, pages = (later - sooner for later, sooner in zip(usage(), before))
    explained = pages and kernel / pages < LONGEST_S
    return kernel / (user + kernel) if explained and user + kernel > 0 else 0.0
