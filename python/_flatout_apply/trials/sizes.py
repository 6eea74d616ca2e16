"""Steps of other sizes, at the end of a trial's measurement: a batch repeated twice, four and eight times, then a part of it.

They tell what a step takes by itself, beside no loader at work: one batch is given again and again, and workers rest. Without workers
the plain size and the part of it are loaded each time, and tell what that takes; with workers some batches are made here at the end
(`making`). On a GPU every step is waited for, because what it does while the next batch is made is hidden otherwise.
"""

import resource
from time import perf_counter_ns

from _flatout_probe import clock, extension
from _flatout_probe.patches import loader
from _flatout_probe.ring import W_SAMPLES, W_SUMS

from ..available import available_bytes
from . import batches, making

# The part of a batch that the smaller steps get, and the fewest samples worth it.
PART, LEAST_SAMPLES = 4, 8
# Steps before the clock starts; steps and seconds that are enough, seconds that are enough for fewer steps.
WARM, ENOUGH, ENOUGH_S, LONG_S = 3, 20, 0.4, 1.0
# All larger sizes together.
LARGER_S = 5.0
# A step that takes so many times as long for twice the samples gains nothing by more of them.
SATURATED = 1.96


class Sizes:
    """`most`: the largest factor on the batch."""

    done = False

    def __init__(self, torch, most, samples, result):
        self.torch, self.most, self.samples, self.result = torch, most, samples, result
        self.cuda = torch.cuda.is_initialized()
        self.peak = self.allocated()
        self.alone = all(not one.num_workers for one, _ in loader.known())
        self.told = result["sizes"] = []
        self.until = perf_counter_ns() + LARGER_S * 1e9
        self.take(1)

    def take(self, factor):
        self.factor, self.steps, self.begun, self.each = factor, 0, 0, []
        extension.repeated = max(factor, 1)
        extension.held = None if self.alone and factor < 2 else {}
        if not factor:
            batches.take_part(max(self.samples // PART, 1))

    def stepped(self, now):
        """Whether all is done."""
        self.steps += 1
        if self.cuda:
            self.torch.cuda.synchronize()
        if (self.factor > 1 and extension.repeated == 1) or (not self.factor and not extension.first_samples):
            # The batch is of a kind that cannot be divided.
            return True
        if self.steps == WARM:
            if self.cuda:
                self.torch.cuda.reset_peak_memory_stats()
            self.begun, self.before = perf_counter_ns(), counters()
            return False
        if self.begun:
            after = counters()
            self.each.append([later - sooner for later, sooner in zip(after, self.before)])
            self.before = after
        if self.begun and self.enough((now - self.begun) / 1e9):
            self.tell()
            larger = self.factor and self.larger()
            if not larger and (not self.factor or self.samples < LEAST_SAMPLES):
                self.make()
                return True
            if not larger and self.alone and self.factor > 1:
                # The plain size once more, so that both sizes that are loaded are so in the same moments.
                self.most = 0
                self.take(1)
            else:
                self.take(self.factor * 2 if larger else 0)
        return False

    def enough(self, seconds):
        steps = len(self.each)
        return (steps >= ENOUGH and seconds >= ENOUGH_S) or (steps >= 2 and seconds >= LONG_S)

    def make(self):
        """What making batches takes where workers do it."""
        ours = [one for one, info in loader.known() if info.feeds and one.num_workers]
        if len(ours) == 1:
            told = {size["samples"]: size for size in (self.told[-1], self.told[0])}
            for samples, seconds in making.sizes(self.torch, ours[0], sorted(told)):
                if samples in told:
                    told[samples]["wait_s"] = seconds

    def tell(self):
        # What others on the machine do only adds: on a CPU the quarter of the steps that they disturbed least tells most; on a GPU, where
        # steps are as long as the host usually takes, the middle.
        part = 2 if self.cuda else 4
        samples, own_ns, wait_ns = (sorted(column)[len(column) // part] for column in zip(*self.each))
        size = {"samples": int(samples), "own_s": own_ns / 1e9}
        if self.alone and self.factor < 2:
            size["wait_s"] = wait_ns / 1e9
        if self.cuda:
            size["memory_bytes"] = max(self.result["memory_bytes"] - self.peak + self.allocated(), 1)
        self.told.append(size)

    def larger(self):
        """Whether twice as much is worth its time, and within the memory: it takes at most twice as much."""
        if self.factor * 2 > self.most:
            return False
        own = [size["own_s"] for size in self.told]
        saturated = len(own) > 1 and own[-1] > SATURATED * own[-2]
        late = perf_counter_ns() + (WARM + 2) * 2 * own[-1] * 1e9 > self.until
        return not saturated and not late and self.fits()

    def fits(self):
        if self.cuda:
            free, _ = self.torch.cuda.mem_get_info()
            return 2 * self.allocated() < 0.9 * (free + self.torch.cuda.memory_reserved())
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < available_bytes() / 2

    def allocated(self):
        """The most that tensors took on the GPU since it was last forgotten; 0 without one."""
        return self.torch.cuda.max_memory_allocated() if self.cuda else 0


def counters():
    """Samples, a step's own time, waiting for batches; evaluating and saving are neither."""
    clock.switch(clock.phase)
    sums = clock.words[W_SUMS : W_SUMS + 7].tolist()
    aside = sums[clock.EVAL] + sums[clock.CHECKPOINT]
    return clock.words[W_SAMPLES], sum(sums) - sums[clock.DATA] - aside, sums[clock.DATA]
