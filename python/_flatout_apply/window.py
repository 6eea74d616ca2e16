"""How fast the steps go over some seconds, with an interval. Evaluating and saving do not count."""

from _flatout_probe import clock
from _flatout_probe.ring import W_SUMS

# The interval is of so many pieces; the factor is Student's for 95% and so many.
PIECES, STUDENT = 8, 2.365
# Seconds and steps that are enough; seconds after which fewer steps are.
ENOUGH_S, ENOUGH, LONG_S, LEAST = 1.5, 16, 6.0, 8


class Window:
    def __init__(self, factor=1.0):
        self.factor, self.each, self.last, self.before = factor, [], None, None

    def stepped(self, now):
        """Whether it has seen enough."""
        sums = clock.words[W_SUMS : W_SUMS + 7].tolist()
        aside = sums[clock.EVAL] + sums[clock.CHECKPOINT]
        if self.last is not None:
            self.each.append(max(now - self.last - (aside - self.aside), 1))
        else:
            self.before = sums
        self.last, self.aside, self.after = now, aside, sums
        seconds, steps = self.seconds(), len(self.each)
        return (seconds >= ENOUGH_S * self.factor and steps >= ENOUGH) or (seconds >= LONG_S * self.factor and steps >= LEAST)

    def seconds(self):
        return sum(self.each) / 1e9

    def step_s(self):
        return self.seconds() / max(len(self.each), 1)

    def share(self, phase):
        """Of the time, what belongs to a phase."""
        return (self.after[phase] - self.before[phase]) / 1e9 / max(self.seconds(), 1e-9)

    def pieces(self):
        """Seconds per step of each piece."""
        count = len(self.each)
        cuts = [count * piece // PIECES for piece in range(PIECES + 1)]
        return [sum(self.each[begin:end]) / 1e9 / (end - begin) for begin, end in zip(cuts, cuts[1:]) if end > begin]


def gain(before, after):
    """The factor on the steps per second, with the ends of its interval: low, middle, high."""
    (slow, slow_error), (fast, fast_error) = (mean_and_error(one.pieces()) for one in (before, after))
    half = STUDENT * ((slow_error / slow) ** 2 + (fast_error / fast) ** 2) ** 0.5
    middle = slow / fast
    return middle / (1 + half), middle, middle * (1 + half)


def mean_and_error(values):
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return mean, (spread / len(values)) ** 0.5
