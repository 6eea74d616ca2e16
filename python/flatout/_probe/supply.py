"""What workers supply while they are asked for batches and nothing else, at the end of a trial's measurement on a GPU: so many of them, and
batches of two sizes. How much less each one gets done beside the others, and what handing a batch over costs, differs much from machine
to machine. On the CPU, which steps and workers share, steps are fed instead (`feeding`).
"""

import os
import resource
from time import perf_counter_ns, process_time_ns

from . import guard
from .available import available_bytes
from .patches import loader

# Batches that wait for each worker's turn.
PREFETCH = 1
# Batches that are timed, at least; with more workers twice as many as those, since they come in bursts.
TIMED = 6
# Seconds that one number of workers may take for one size, by what making a batch takes alone, and seconds for all of them.
LONGEST_S, ALL_S = 1.5, 6.0
# A worker that gives no batch for so long is given up.
PATIENCE_S = 5


class Supply:
    """`counts`: numbers of workers, the most telling first. All of it is done at once."""

    done = True

    def __init__(self, torch, counts, result):
        self.torch, self.told = torch, []
        self.until = perf_counter_ns() + ALL_S * 1e9
        # Else its batches would be cut, or repeated, like those of the steps before.
        loader.repeated, loader.first_samples, loader.held = 1, 0, None
        sizes = expected(result["sizes"])
        one = suitable(torch)
        off, guard.off = guard.off, True
        try:
            # Neither the settings under trial nor the record know of it.
            for count in counts if one is not None and sizes else ():
                if count and perf_counter_ns() < self.until:
                    self.ask(one, count, sizes)
        except Exception:
            # Data that only the program's own loader can read.
            pass
        finally:
            guard.off = off
        result["supply"] = self.told

    def ask(self, one, count, sizes):
        """So many workers for every size that does not take too long."""
        warm, timed = count * PREFETCH + 1, max(TIMED, 2 * count)
        usable = min(count, len(os.sched_getaffinity(0)))
        parts = [samples for samples, seconds in sizes if (warm + timed) * seconds / usable <= LONGEST_S]
        if not parts:
            return
        indices = endless(one.batch_sampler)
        batches = [[next(indices) for _ in range(part)] for part in parts for _ in range(warm + timed)]
        source = iter(self.loader(one, count, batches))
        try:
            for part in parts:
                for _ in range(warm):
                    next(source)
                begin, own = perf_counter_ns(), process_time_ns()
                for _ in range(timed):
                    next(source)
                batch_s, host_s = (perf_counter_ns() - begin) / timed / 1e9, (process_time_ns() - own) / timed / 1e9
                self.told.append({"workers": count, "samples": part, "batch_s": batch_s, "host_s": host_s})
        finally:
            source._shutdown_workers()

    def loader(self, one, count, batches):
        return self.torch.utils.data.DataLoader(
            one.dataset,
            batch_sampler=batches,
            num_workers=count,
            collate_fn=one.collate_fn,
            pin_memory=self.torch.cuda.is_initialized(),
            prefetch_factor=PREFETCH,
            timeout=PATIENCE_S,
            worker_init_fn=one.worker_init_fn,
            multiprocessing_context=one.multiprocessing_context,
        )


def expected(sizes):
    """Samples and the seconds that making a batch of so many takes alone: of the plain size, and of the largest."""
    plain = next((size for size in sizes if size.get("wait_s") is not None), None)
    if plain is None:
        return []
    largest = max(size["samples"] for size in sizes)
    return [(samples, plain["wait_s"] * samples / plain["samples"]) for samples in sorted({plain["samples"], largest})]


def suitable(torch):
    """The one loader that feeds the steps, if its data can be asked for by index and there is memory for its workers."""
    ours = [one for one, info in list(loader._known.items()) if info.feeds]
    room = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < available_bytes() / 2
    return ours[0] if len(ours) == 1 and room and is_forked(torch, ours[0]) and by_index(ours[0]) else None


def by_index(one):
    """Whether its data can be asked for by index, in batches."""
    from torch.utils.data import IterableDataset

    return one.batch_sampler is not None and not isinstance(one.dataset, IterableDataset)


def is_forked(torch, one):
    """Whether its workers are: others would run the program's beginning once more."""
    return (one.multiprocessing_context or torch.multiprocessing).get_start_method() == "fork"


def endless(batches):
    """The indices in them, from the beginning again at the end, as long as there are any."""
    found = True
    while found:
        found = False
        for batch in batches:
            for index in batch:
                found = True
                yield index
