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

# Batches that wait for each worker's turn, unless the program asks for another number.
PREFETCH = 2
# Batches that are timed, at least; with more workers twice as many as those, since they come in bursts.
TIMED = 6
# Seconds that one number of workers may take for one size, by what making a batch takes alone, and seconds for all of them.
LONGEST_S, ALL_S = 1.5, 6.0
# A worker that gives no batch for so long is given up.
PATIENCE_S = 5


class Supply:
    """`counts`: numbers of workers, the most telling first; `samples`: those of a step. All of it is done at once."""

    done = True

    def __init__(self, torch, counts, samples, result):
        self.torch = torch
        self.told = result["supply"] = []
        self.until = perf_counter_ns() + ALL_S * 1e9
        # Else its batches would be cut, or repeated, like those of the steps before.
        loader.repeated, loader.first_samples, loader.held = 1, 0, None
        off = guard.off
        try:
            one, sizes = suitable(torch, samples), expected(result["sizes"], samples)
            # Neither the settings under trial nor the record know of it.
            guard.off = True
            for count in counts if one is not None else ():
                if count and not self.is_late():
                    self.ask(one, count, sizes)
        except Exception:
            # Data that only the program's own loader can read.
            pass
        finally:
            guard.off = off

    def is_late(self):
        return perf_counter_ns() > self.until

    def ask(self, one, count, sizes):
        """So many workers for every size that does not take too long."""
        prefetch = one.prefetch_factor or PREFETCH
        warm, timed = count * prefetch + 1, max(TIMED, 2 * count)
        usable = min(count, len(os.sched_getaffinity(0)))
        parts = [samples for samples, seconds in sizes if (warm + timed) * seconds / usable <= LONGEST_S]
        if not parts:
            return
        indices = endless(one.batch_sampler)
        batches = [[next(indices) for _ in range(part)] for part in parts for _ in range(warm + timed)]
        source, whole = iter(self.loader(one, count, batches, prefetch)), False
        try:
            whole = all(self.tell(source, count, part, warm, timed) for part in parts)
        finally:
            if not whole:
                # PyTorch would wait for each of them in turn.
                for worker in source._workers:
                    worker.kill()
            source._shutdown_workers()

    def tell(self, source, count, part, warm, timed):
        """Whether there was time for it."""
        begin = own = 0
        for number in range(warm + timed):
            if number == warm:
                begin, own = perf_counter_ns(), process_time_ns()
            next(source)
            if self.is_late():
                return False
        batch_s, host_s = (perf_counter_ns() - begin) / timed / 1e9, (process_time_ns() - own) / timed / 1e9
        self.told.append({"workers": count, "samples": part, "batch_s": batch_s, "host_s": host_s})
        return True

    def loader(self, one, count, batches, prefetch):
        return self.torch.utils.data.DataLoader(
            one.dataset,
            batch_sampler=batches,
            num_workers=count,
            collate_fn=one.collate_fn,
            pin_memory=self.torch.cuda.is_initialized(),
            prefetch_factor=prefetch,
            timeout=PATIENCE_S,
            worker_init_fn=one.worker_init_fn,
            multiprocessing_context=one.multiprocessing_context,
        )


def expected(sizes, samples):
    """Samples and the seconds that making a batch of so many takes alone: of the plain size, and of the largest."""
    plain_s = next((size["wait_s"] for size in sizes if size["samples"] == samples and "wait_s" in size), None)
    if plain_s is None:
        return []
    largest = max(size["samples"] for size in sizes)
    return [(each, plain_s * each / samples) for each in sorted({samples, largest})]


def suitable(torch, samples):
    """The one loader that feeds the steps, if its data can be asked for by index, a step takes one batch of it, its workers are
    forked and there is memory for them."""
    ours = [one for one, info in list(loader._known.items()) if info.feeds]
    if len(ours) != 1 or not by_index(ours[0]):
        return None
    one = ours[0]
    # Several batches a step, or sizes that are no number of samples, would be taken for larger batches.
    plain = getattr(one.batch_sampler, "batch_size", None) == samples
    plain = plain and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < available_bytes() / 2
    return one if plain and is_forked(torch, one) else None


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
