"""How fast the steps go over some seconds, with an interval. Evaluating and saving do not count.

Read a few times per second, from the counters that the probe keeps anyway: a loop that is watched runs as it does when nobody watches.
"""

from _flatout_probe import clock
from _flatout_probe.ring import W_STEPS, W_SUMS

# The interval is over this many pieces; the factors are Student's for 95%, by the pieces less one.
PIECES, STUDENT = 8, (0.0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365)
# Seconds and steps that are enough; seconds after which fewer steps are.
ENOUGH_S, ENOUGH, LONG_S, LEAST = 1.5, 16, 3.0, 5
# Readings that are kept, and the time from one to the next: those of a loop that nobody changes go back some seconds.
READINGS, APART_NS = 64, 50_000_000
# No rate is known from fewer pieces than this; so many are enough where the difference is large.
FEWEST, FEW, FEW_S = 3, 5, 0.3


class Window:
    def __init__(self, factor=1.0, rolling=False, scale=1.0):
        # One step counts for so many of the program's own, where batches are larger.
        self.scale = scale
        self.factor, self.rolling, self.readings, self.apart_ns = factor, rolling, [], APART_NS

    def stepped(self, now):
        """After some of the steps. Gives whether it has seen enough."""
        words = clock.words
        sums = words[W_SUMS : W_SUMS + 7].tolist()
        if len(self.readings) > 1 and now - self.readings[-2][0] < self.apart_ns:
            self.readings.pop()
        self.readings.append((now, words[W_STEPS], sums))
        if len(self.readings) > READINGS:
            if self.rolling:
                del self.readings[0]
            else:
                # Longer pieces instead of more of them.
                del self.readings[1:-1:2]
                self.apart_ns *= 2
        return self.enough()

    def enough(self):
        seconds, steps = self.seconds(), self.steps()
        return (seconds >= ENOUGH_S * self.factor and steps >= ENOUGH) or (seconds >= LONG_S * self.factor and steps >= LEAST)

    def begun(self):
        return self.readings[0][0]

    def steps(self):
        return self.readings[-1][1] - self.readings[0][1] if self.readings else 0

    def seconds(self):
        return between(self.readings[0], self.readings[-1]) if self.readings else 0.0

    def step_s(self):
        return self.seconds() / max(self.steps(), 1) / self.scale

    def share(self, phase):
        """The part of the time that belongs to a phase."""
        if not self.readings:
            return 0.0
        return (self.readings[-1][2][phase] - self.readings[0][2][phase]) / 1e9 / max(self.seconds(), 1e-9)

    def pieces(self):
        """Seconds per step of each piece; pieces are about equally long, and none is without a step."""
        least, found, first = self.seconds() / PIECES * 0.999, [], None
        for reading in self.readings:
            if first is None:
                first = reading
            elif reading[1] > first[1] and (between(first, reading) >= least):
                found.append((between(first, reading), reading[1] - first[1]))
                first = reading
        last = self.readings[-1] if self.readings else None
        if first is not last and found and last[1] > first[1]:
            seconds, steps = found[-1]
            found[-1] = seconds + between(first, last), steps + last[1] - first[1]
        return [seconds / steps / self.scale for seconds, steps in found]


def between(first, last):
    """Seconds, without those of evaluations and checkpoints."""
    aside = sum(last[2][phase] - first[2][phase] for phase in (clock.EVAL, clock.CHECKPOINT))
    return max(last[0] - first[0] - aside, 1) / 1e9


def gain(before, after, sure=1.0):
    """The factor on the steps per second, with the ends of its interval: low, middle, high. `sure` widens the interval."""
    middle = before.step_s() / max(after.step_s(), 1e-12)
    pieces = before.pieces(), after.pieces()
    fewest = min(map(len, pieces))
    if fewest < FEWEST:
        return 0.0, middle, middle * 10
    errors = [error / max(mean, 1e-12) for mean, error in map(mean_and_error, pieces)]
    half = sure * STUDENT[min(fewest - 1, len(STUDENT) - 1)] * sum(error**2 for error in errors) ** 0.5
    return middle / (1 + half), middle, middle * (1 + half)


def clear(before, after):
    """The same where the difference is so large that few steps show it; None where it is not."""
    if after.seconds() < FEW_S or len(after.pieces()) < FEW:
        return None
    found = gain(before, after, sure=2.0)
    return found if found[0] > 1.05 or found[2] < 0.95 else None


def mean_and_error(values):
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return mean, (spread / len(values)) ** 0.5
