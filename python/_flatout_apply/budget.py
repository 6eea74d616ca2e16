"""What trying may cost. A trial is paid from a share of the run so far, from what earlier changes saved, and from a part of what it promises
itself: a trial that cannot be paid waits until the run is longer, and one that costs more than it was allowed is taken back."""

from _flatout_probe import clock
from _flatout_probe.ring import W_STEPS

# Of the time that the changes saved, what further trials may take.
SAVED = 0.3
# Of what a change promises to save if the run goes on for as long as it went.
TRUST = 0.15
# A run that ends soon must not lose by a promise that does not come true: no more than this, until it went for so many seconds.
BET_S, SHORT_S = 0.1, 15.0
# Below this no trial can be told from noise.
LEAST_S = 0.06
# Seconds that a kind of change may take that the user asked for with `--allow`.
ASKED_S = 60.0


class Budget:
    # Of the run so far, what trials may have cost in all.
    SHARE = 0.012

    def __init__(self):
        self.spent_s, self.won_s, self.first_ns = 0.0, 0.0, 0

    def allowed_s(self, now, change, kept):
        """Seconds that a trial of the change may lose."""
        run_s = (now - self.first_ns) / 1e9
        share = max(1.0 - 1.0 / change.expected, 0.0) if change.expected > 0 else 0.0
        bet_s = min(TRUST * share * run_s, BET_S) + TRUST * share * max(run_s - SHORT_S, 0.0)
        promised = bet_s if change.predicted else 0.0
        asked = ASKED_S if change.changes_numbers else 0.0
        return self.SHARE * run_s + SAVED * saved_s(kept) - self.spent_s + promised + asked

    def pays(self, now, change, kept):
        return change.is_refused or change.cost_s <= self.allowed_s(now, change, kept)


class Trial:
    """What a change has cost since it was put in force, against the rate before."""

    def __init__(self, now, before, allowed_s, scale=1.0):
        self.scale = scale
        self.begun, self.steps, self.aside, self.step_s = now, clock.words[W_STEPS], aside(), before.step_s()
        self.allowed_s = allowed_s

    def lost_s(self, now):
        seconds = (now - self.begun - (aside() - self.aside)) / 1e9
        return seconds - (clock.words[W_STEPS] - self.steps) * self.scale * self.step_s


def aside():
    sums = clock.words[clock.SUMS].tolist()
    return sums[clock.EVAL] + sums[clock.CHECKPOINT]


def saved_s(kept):
    steps = clock.words[W_STEPS]
    return sum((steps - one.since) * one.saved_s_per_step for one in kept)
