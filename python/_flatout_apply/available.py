"""Memory that the program may still take."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def available_bytes() -> int:
    """What processes may still take, by the kernel and by the limits of the groups they are in, such as a container's or a job's."""
    with open("/proc/meminfo") as lines:
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    for folder, (most, used, idle) in groups():
        try:
            limit, held = (int(read(folder + name)) for name in (most, used))
            stat = dict(line.split() for line in read(folder + "memory.stat").splitlines())
            found.append(limit - held + int(stat.get(idle, 0)))
        except (OSError, ValueError):
            pass
    return min(found, default=0)


def groups() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The control groups of this process and those above, each with the names of its limit, its use and what it would give back."""
    second = ("memory.max", "memory.current", "inactive_file")
    first = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    try:
        lines = read("/proc/self/cgroup").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            parts = [part for part in path.split("/") if part]
            for count in range(len(parts), -1, -1):
                folder = "/".join(["/sys/fs/cgroup", *(["memory"] if controllers else []), *parts[:count], ""])
                yield folder, first if controllers else second


def read(path: str) -> str:
    with open(path) as file:
        return file.read()
