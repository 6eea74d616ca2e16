"""Steps fed by real workers, at the end of a trial's measurement: what the whole loop takes with so many of them, and with a larger
batch. How workers, threads and the copies between processes act on each other on this machine nobody can reckon; it is measured.

The loader's place is taken by loaders of our own over the same data, one for each number of workers, which are kept until all is
done. All combinations come in turn, several times, so that what others do on the machine falls on all of them. A pause now and then
is the program's own (collecting many samples' garbage): the mean counts.
"""

from time import perf_counter_ns, sleep

from _flatout_probe import extension, guard
from _flatout_probe.patches import loader

from .own_loader import batches, over, prefetched, suitable
from .sizes import counters

# Rounds over all combinations, and seconds for all of them.
ROUNDS, ALL_S = 3, 8.0
# A first round that takes longer is given up.
TOO_LONG_S = 16.0
# Steps and seconds of a block that are enough, seconds that are enough for three steps.
ENOUGH, ENOUGH_S, LEAST, LONG_S = 12, 0.3, 3, 0.5
# Workers that are left may make what they were asked for, for so long.
REST_S = 0.5


class Feeding:
    """`wishes`: numbers of workers, each with the most threads for the steps beside them, or None; `freeze`: as the search would have
    the workers."""

    def __init__(self, torch, wishes, samples, freeze, result):
        self.torch, self.freeze, self.result, self.own_threads = torch, freeze, result, torch.get_num_threads()
        self.sources, self.rounds, self.taken = {}, 0, {}
        self.blocks, self.at, self.first_ns = [], 0, perf_counter_ns()
        extension.repeated, extension.first_samples, extension.held = 1, 0, None
        self.ours = suitable(torch, samples)
        if self.ours:
            self.blocks = self.combinations(wishes, samples)
        self.done = not self.blocks
        if self.done:
            self.end()
        else:
            self.begin()

    def combinations(self, wishes, samples):
        """Workers, threads and samples, first what the program has; none where they would take too long."""
        now = self.ours.num_workers
        counts = [(now, self.own_threads)]
        counts += [(count, min(self.own_threads, most or self.own_threads)) for count, most in wishes]
        times, told = self.result["times_ns"], self.result["sizes"]
        present_s = (times[-1] - self.result["begin_ns"]) / 1e9 / len(times)
        # If all steps were as those of the trial, and all of them grew with the samples.
        expected = {size["samples"]: present_s * size["samples"] / samples for size in told if size["samples"] > samples}
        expected[samples] = present_s
        for larger in sorted(expected, reverse=True):
            blocks = list(dict.fromkeys((count, threads, size) for count, threads in counts for size in (samples, larger)))
            if sum((self.warm_up(count) + LEAST) * expected[size] for count, _, size in blocks) <= ALL_S:
                return blocks
        return []

    def warm_up(self, count):
        """Until the batches that were made before, of another size, are used up."""
        return count * prefetched(self.ours) + 1

    def begin(self):
        count, threads, self.size = self.blocks[self.at]
        try:
            if count not in self.sources:
                self.sources[count] = self.source(count)
        except Exception:
            self.drop(count)
            return
        self.torch.set_num_threads(threads)
        extension.fed = (loader.info_of(self.ours), self.sources[count])
        self.left, self.steps, self.before = self.warm_up(count), 0, None

    def source(self, count):
        # Those of the program stay as they are: they are what the others are held against.
        freeze = self.freeze and count != self.ours.num_workers
        with guard.unseen():
            return over(self.torch, self.ours, count, batches(self.ours, lambda: self.size), self.ours.pin_memory, freeze)

    def stepped(self, now):
        """Whether all is done."""
        if not self.done and not self.rounds and (now - self.first_ns) / 1e9 > TOO_LONG_S:
            self.end()
        if self.done:
            return True
        if extension.fed is None:
            # Its workers cannot read the data, or not in time.
            self.drop(self.blocks[self.at][0])
        elif self.left:
            self.left -= 1
            self.before = counters()
            self.begun = perf_counter_ns()
        else:
            self.steps += 1
            seconds = (now - self.begun) / 1e9
            if (self.steps >= ENOUGH and seconds >= ENOUGH_S) or (self.steps >= LEAST and seconds >= LONG_S):
                _, own_ns, wait_ns = (later - sooner for later, sooner in zip(counters(), self.before))
                self.taken.setdefault(self.blocks[self.at], []).append(((own_ns + wait_ns) / 1e9, self.steps))
                # Else they would disturb the next ones.
                sleep(min((self.warm_up(self.blocks[self.at][0]) - 1) * seconds / self.steps, REST_S))
                self.next_block()
        return self.done

    def next_block(self):
        self.at += 1
        if self.at >= len(self.blocks):
            self.at = 0
            self.rounds += 1
            spent = (perf_counter_ns() - self.first_ns) / 1e9
            if self.rounds >= ROUNDS or spent * (self.rounds + 1) / self.rounds > ALL_S:
                self.tell()
                self.end()
                return
        self.begin()

    def drop(self, count):
        """This number of workers does not do. What the program has must do, or there is nothing to hold others against."""
        present, kept = self.blocks[0][0], [block for block in self.blocks if block[0] != count]
        self.at = sum(block[0] != count for block in self.blocks[: self.at])
        self.blocks = kept
        if count == present:
            self.end()
        elif self.at < len(kept):
            self.begin()
        else:
            self.at -= 1
            self.next_block()

    def tell(self):
        told = self.result["fed"] = []
        for block in self.blocks:
            seconds, steps = map(sum, zip(*self.taken[block]))
            told.append({"workers": block[0], "threads": block[1], "samples": block[2], "step_s": seconds / steps})

    def end(self):
        self.done, extension.fed = True, None
        self.torch.set_num_threads(self.own_threads)
        for iterator in self.sources.values():
            try:
                # Without it they would end with the last reference, but nobody knows when that is.
                getattr(iterator, "_shutdown_workers", lambda: None)()
            except Exception:
                pass
        self.sources.clear()
