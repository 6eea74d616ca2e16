"""CPUs: what the program uses, and what is free for more workers."""

import os
from time import perf_counter_ns, process_time_ns


class Usage:
    """Since it was made: CPUs that this process used (with the loader's workers), and CPUs that nobody used."""

    def __init__(self, cpus):
        self.cpus, self.mine = cpus, own_cpus()
        self.began, self.used, self.idle, self.workers = perf_counter_ns(), process_time_ns(), idle_s(self.mine), {}

    def seconds(self):
        return (perf_counter_ns() - self.began) / 1e9

    def own(self):
        return (process_time_ns() - self.used) / 1e9 / max(self.seconds(), 1e-9)

    def free(self):
        """None where nobody knows. No more than the process may use."""
        idle = idle_s(self.mine)
        if idle is None or self.idle is None:
            return None
        return max(min((idle - self.idle) / max(self.seconds(), 1e-9), self.cpus), 0.0)


def own_cpus():
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def idle_s(mine):
    """Seconds that these CPUs did nothing, by the kernel."""
    try:
        with open("/proc/stat") as file:
            lines = [line.split() for line in file if line.startswith("cpu") and line[3:4].isdigit()]
        # Waiting for a disk is idle as well.
        ticks = [int(line[4]) + int(line[5]) for line in lines if mine is None or int(line[0][3:]) in mine]
        return sum(ticks) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def resident_bytes():
    """Memory of this process; a fork copies its tables."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
