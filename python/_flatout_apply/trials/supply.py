"""What workers supply while they are asked for batches and nothing else, at the end of a trial's measurement on a GPU: so many of them, and
batches of two sizes. How much less each one gets done beside the others, and what handing a batch over costs, differs much from machine
to machine. On the CPU, which steps and workers share, steps are fed instead (`feeding`).
"""

import os
from time import perf_counter_ns, process_time_ns

from _flatout_probe import extension, guard

from .own_loader import batches, over, prefetched, suitable

# Batches that are timed, at least; with more workers twice as many as those, since they come in bursts.
TIMED = 6
# Seconds that one number of workers may take for one size, by what making a batch takes alone, and seconds for all of them.
LONGEST_S, ALL_S = 2.5, 6.0
# More workers than this are not asked, though the program have them.
MOST = 64


class Supply:
    """`counts`: numbers of workers, the most telling first; `samples`: those of a step; `freeze`: as the search would have the workers.
    All of it is done at once."""

    done = True

    def __init__(self, torch, counts, samples, freeze, result):
        self.torch, self.freeze = torch, freeze
        self.told = result["supply"] = []
        self.until = perf_counter_ns() + ALL_S * 1e9
        # Else its batches would be cut, or repeated, like those of the steps before.
        extension.repeated, extension.first_samples, extension.held = 1, 0, None
        try:
            one, sizes = suitable(torch, samples), expected(result["sizes"], samples)
            with guard.unseen():
                for count in numbers(one, counts) if one is not None else ():
                    if not self.is_late():
                        self.ask(one, count, sizes)
        except Exception:
            # Data that only the program's own loader can read.
            pass

    def is_late(self):
        return perf_counter_ns() > self.until

    def ask(self, one, count, sizes):
        """So many workers, for the two largest sizes that do not take too long."""
        # Those that were asked for before, and one more of each worker: all of them are at work on this size then.
        warm, timed = count * prefetched(one) + count, max(TIMED, 2 * count)
        usable = min(count, len(os.sched_getaffinity(0)))
        parts = [samples for samples, seconds in sizes if (warm + timed) * seconds / usable <= LONGEST_S][-2:]
        if not parts:
            return
        self.part = parts[0]
        asked = batches(one, lambda: self.part)
        # Pinned, as the search would have them.
        source, whole = over(self.torch, one, count, asked, self.torch.cuda.is_initialized(), self.freeze), False
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
        self.part = part
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


def numbers(one, counts):
    """Those asked for and, where the program has more workers than that, its own: whether they are in each other's way only they can tell."""
    own = one.num_workers
    most = max(counts, default=0)
    return [*filter(None, counts[:1]), *([own] if most < own <= MOST else []), *filter(None, counts[1:])]


def expected(sizes, samples):
    """Samples and the seconds that making a batch of so many takes alone: of the smallest size, the plain one, and the largest."""
    plain_s = next((size["wait_s"] for size in sizes if size["samples"] == samples and "wait_s" in size), None)
    if plain_s is None:
        return []
    taken = [size["samples"] for size in sizes]
    return [(each, plain_s * each / samples) for each in sorted({min(taken), samples, max(taken)})]
