"""`flatout run --auto`: watches the first steps, puts settings in force while the program runs, measures each against what was before,
and keeps or takes it back. By default only settings that leave results alone.

The first steps are looked at one by one. From then on everything runs after some of the optimizer's steps, a few times per second, on
the training thread. One change at a time: put in force, some steps to settle, then a window of steps. A change stays when the lower end
of its gain's interval is above 1. What trials may cost is limited (`budget`): a trial that cannot be paid yet waits. A change that was kept
is looked at again: where the steps become slower than they were before it, some run without it.
"""

import json
import os
import weakref
from time import perf_counter_ns

from _flatout_probe import clock, guard
from _flatout_probe.patches import loader as watched
from _flatout_probe.ring import W_STEPS

from . import changes, losses, observe
from .budget import LEAST_S, Budget, Trial, saved_s
from .changes import zero
from .changes.change import Without
from .changes.shapes import Shapes
from .control import Control
from .spare import Usage
from .window import Window, clear, gain

# Steps before the baseline: the first ones fill caches. Of slow steps, the seconds are enough.
WARM, WARM_S, WARM_LEAST = 8, 3.0, 3
# Below this gain a change is not worth keeping.
WORTH = 1.01
# Looks at a change that is neither better nor worse, each after twice the time of the one before.
TRIES = 3
# Steps that a change is kept waiting for as many losses as its guard needs.
GUARDED = 3 * losses.LEAST
# What may help is looked for again after this many seconds.
AGAIN_S = 2.0
# Where the steps are clearly slower than this part of the rate before a change that was kept, the change is doubted.
DOUBT = 0.98
# Seconds from one total to the next.
TOTAL_S = 30.0

_auto = None


@guard.quietly
def install(torch):
    global _auto
    text = os.environ.get("FLATOUT_AUTO")
    if text:
        _auto = Auto(torch, json.loads(text))


class Auto:
    def __init__(self, torch, asked):
        self.torch, self.allowed, self.without = torch, set(asked.get("allow", ())), set(asked.get("without", ()))
        self.steps, self.last, self.budget, self.trial = 0, -1, Budget(), None
        self.before, self.window, self.baseline = None, None, None
        self.change, self.tries, self.settled = None, 0, 0
        # Those before a change that alters the numbers, and those with it.
        self.losses, self.losses_after = [], []
        self.kept, self.iterators, self.outcomes = [], {}, []
        self.waiting, self.look_at, self.starts_s, self.total_at, self.scale = [], 0, 0.0, 0, 1.0
        # Nothing is left to try.
        self.idle = False
        # Processes that train side by side share the CPUs.
        beside = os.environ.get("LOCAL_WORLD_SIZE") or "1"
        self.tried, self.cpus = set(), max(int(asked.get("cpus") or 0) // max(int(beside), 1), 1)
        self.control, self.shapes = Control(self.iterator_of), Shapes()
        watched.on_got.append(self.shapes.batch_came)
        observe.install()
        if self.allowed:
            losses.install(torch)
        watched.on_iterator.append(self.iterated)
        clock.after_step.append(self.stepped)
        clock.flushers.append(self.look_after)
        clock.enders.append(self.ended)

    def iterated(self, loader, iterator):
        """The program began an epoch, or an evaluation."""
        self.iterators[id(loader)] = weakref.ref(loader), weakref.ref(iterator)
        state = watched.state_of(iterator)
        if state is not None and state[0].feeds:
            self.starts_s += (perf_counter_ns() - state[1]) / 1e9
        if not loader.persistent_workers:
            # One that is made in the loop's own line would be gone by now.
            iterator._flatout_loader = loader
        if len(self.iterators) > 100:
            self.iterators = {key: found for key, found in self.iterators.items() if found[0]() is not None}
        self.control.iterated(loader, iterator)

    def holds(self, kind):
        """Whether such a change is in force."""
        return any(isinstance(one, kind) for one in self.kept)

    def iterator_of(self, loader):
        found = self.iterators.get(id(loader))
        return found[1]() if found is not None and found[0]() is loader else None

    def stepped(self, now):
        if guard.off:
            return
        try:
            self.step(now)
        except BaseException as error:
            if guard.foreign(error, "auto"):
                raise

    def step(self, now):
        if self.last == clock.words[W_STEPS]:
            return
        self.last = clock.words[W_STEPS]
        if self.before is None:
            self.warm(now)
        elif self.change is not None:
            self.judge(now)
        else:
            self.watch(now)

    def warm(self, now):
        self.steps += 1
        self.budget.first_ns = self.budget.first_ns or now
        zero.stepped()
        seconds = (now - self.budget.first_ns) / 1e9
        if self.steps >= WARM or (self.steps >= WARM_LEAST and seconds >= WARM_S):
            # What was looked at until now would slow the baseline down.
            observe.done()
            zero.done()
            clock.after_step.remove(self.stepped)
            clock.after_some_steps.append(self.stepped)
            self.rest(0)
            self.watch(now)
            changes.watch()

    def rest(self, settle):
        """The rate before the next change is taken from here on, after some steps."""
        self.before, self.settled = Window(rolling=True, scale=self.scale), clock.words[W_STEPS] + settle
        self.usage, self.starts_s = Usage(self.cpus), 0.0

    def watch(self, now):
        """No change is being tried."""
        if clock.words[W_STEPS] < self.settled or not self.before.stepped(now):
            return
        if self.baseline is None:
            self.baseline = self.before.step_s()
            watched.on_got.remove(self.shapes.batch_came)
        if not self.doubted(now) and not self.idle:
            self.next_change(now)
        if self.idle and self.change is None and not self.unsure():
            clock.after_some_steps.remove(self.stepped)

    def unsure(self):
        """Changes that were kept and not yet tried without, the last one first. One of the loader's that others build on stays."""
        found, built_on = [], False
        for one in reversed(self.kept):
            of_loader = one.key.startswith("loader.")
            if one.rate_before is not None and not (of_loader and built_on):
                found.append(one)
            built_on |= of_loader
        return found

    def doubted(self, now):
        """Some steps without a change, where they are slower than they were before it."""
        unsure = self.unsure()
        if not unsure or gain(unsure[0].rate_before, self.before)[2] >= DOUBT:
            return False
        without = Without(unsure[0])
        return self.budget.pays(now, without, self.kept) and self.begin(now, without)

    def next_change(self, now):
        """Puts the next change in force that can be paid."""
        if now >= self.look_at:
            self.waiting, self.look_at = changes.candidates(self), now + AGAIN_S * 1e9
        left = [one for one in self.waiting if one.setting not in self.tried]
        self.idle = not left
        for change in left:
            if self.budget.pays(now, change, self.kept) and self.begin(now, change):
                return

    def begin(self, now, change):
        """Whether the change is in force."""
        if self.allowed and not change.is_refused:
            self.learn_losses(change)
            if not self.can_guard(change):
                return False
        self.tried.add(change.setting)
        trial = Trial(now, self.before, self.budget.allowed_s(now, change, self.kept), self.scale * change.scale)
        reason = self.put(change)
        if reason is not None:
            self.budget.spent_s += max((perf_counter_ns() - now) / 1e9, 0.0)
            self.tell(change, "left-alone", reason)
            return False
        self.change, self.trial, self.tries, self.window = change, trial, 0, None
        self.settled = clock.words[W_STEPS] + change.settle
        if change.undoes is not None:
            self.kept.remove(change.undoes)
            return True
        self.tell(change, "tried")
        return True

    def learn_losses(self, change):
        """Those of the steps just before the change, and of earlier ones where these are few."""
        if losses.waiting() >= losses.LEAST:
            self.losses = losses.take()
        elif change.changes_numbers:
            self.losses += losses.take()
        self.losses_after = []

    def can_guard(self, change):
        """Whether the loss guard has anything to compare with. A change is not made before."""
        return not change.changes_numbers or len(self.losses) >= losses.LEAST

    def put(self, change):
        """None where the change is in force, else why not."""
        if change.key in self.without:
            return "excluded"
        try:
            return change.put()
        except changes.LeftAlone as reason:
            return str(reason)

    def judge(self, now):
        reason = self.change.failed()
        if reason is not None:
            self.take_back(now, reason)
            return
        if clock.words[W_STEPS] < self.settled:
            return
        if self.window is None:
            self.window = Window(scale=self.scale * self.change.scale)
        if self.window.stepped(now):
            self.decide(now, self.measured())
            return
        found = clear(self.before, self.window)
        if found is not None:
            self.decide(now, found)
        elif self.window.steps() > 1 and self.lost_too_much(now):
            self.take_back(now, "slower", self.measured())

    def lost_too_much(self, now):
        limit = max(self.trial.allowed_s, 1.2 * self.change.cost_s, LEAST_S, 1.5 * self.trial.step_s)
        return self.trial.lost_s(now) > limit and self.window.step_s() > self.trial.step_s

    def decide(self, now, found):
        hurt = self.hurts_loss()
        if hurt:
            self.take_back(now, "hurts-loss", found)
        elif found[0] > 1.0 and found[1] >= max(WORTH, self.change.worth):
            if hurt is False:
                self.keep(now, found)
            elif clock.words[W_STEPS] - self.trial.steps >= GUARDED:
                # The program calls `backward` in a way that shows no loss: what is not proved is not kept.
                self.take_back(now, "loss-unknown", found)
        elif self.change.undoes is not None:
            self.take_back(now, None)
        elif found[2] < 1.0 or self.tries + 1 >= TRIES or self.lost_too_much(now):
            self.take_back(now, "slower" if found[2] < 1.0 else "no-gain", found)
        else:
            # The same window goes on: nothing is lost by it.
            self.tries += 1
            self.window.factor *= 2

    def hurts_loss(self):
        """None where too few losses were seen to tell. Most changes leave them as they are."""
        if not self.change.changes_numbers:
            return False
        self.losses_after += losses.take()
        return losses.hurt(self.losses, self.losses_after)

    def measured(self):
        return gain(self.before, self.window)

    def keep(self, now, found):
        change = self.change
        if change.undoes is not None:
            # It is faster without: the change is gone for good.
            self.tell(change.undoes, "taken-back", "slower-later", [1 / found[2], 1 / found[1], 1 / max(found[0], 1e-9)])
            change.undoes.end()
            self.over(now, change, None)
            return
        self.scale *= change.scale
        change.since, change.saved_s_per_step = clock.words[W_STEPS], (self.before.step_s() - self.window.step_s()) * self.scale
        # What changes the numbers was asked for, and the loss guard has looked at it.
        change.rate_before = None if change.changes_numbers else self.before
        self.kept.append(change)
        self.tell(change, "kept", None, found)
        self.over(now, change, None)
        self.before.readings = self.window.readings

    def take_back(self, now, reason, found=None):
        change = self.change
        if change.undoes is not None:
            self.restore(now, change)
            return
        change.back()
        self.tell(change, "taken-back", reason, found)
        self.over(now, change, reason)

    def restore(self, now, without):
        """It is not faster without: the change is in force again, and not doubted any more."""
        change = without.undoes
        reason = self.put(change)
        if reason is None:
            change.rate_before = None
            change.since += clock.words[W_STEPS] - self.trial.steps
            self.kept.append(change)
        else:
            self.tell(change, "taken-back", reason)
        self.over(now, without, None)

    def over(self, now, change, reason):
        lost_s = self.trial.lost_s(now)
        self.budget.spent_s += max(lost_s, 0.0)
        self.budget.won_s += max(-lost_s, 0.0)
        if change.undoes is None:
            self.outcomes.append((change.setting, reason))
        if self.allowed:
            # Of a change that was taken back they are no measure for the next one.
            losses.take()
            self.losses = self.losses_after if change.changes_numbers and reason is None else self.losses
        self.change, self.look_at = None, 0
        self.tell_total()
        self.rest(change.settle)

    def look_after(self, last=False):
        """Once a second: a change that was kept and no longer works is taken back."""
        for change in [one for one in self.kept if one.failed() is not None]:
            self.kept.remove(change)
            change.back()
            clock.fact("auto." + change.key, {"state": "taken-back", "setting": change.setting, "step": clock.words[W_STEPS], "reason": change.failed()})
        if self.kept and perf_counter_ns() >= self.total_at:
            self.tell_total()

    def tell(self, change, state, reason=None, found=None):
        value = {"state": state, "setting": change.setting, "step": clock.words[W_STEPS], "reason": reason}
        if found is not None and self.window is not None:
            value["gain"] = [round(one, 4) for one in found]
            value["before_s"], value["after_s"] = round(self.before.step_s(), 6), round(self.window.step_s(), 6)
        clock.fact("auto." + change.key, {key: one for key, one in value.items() if one is not None})
        # A program that dies of it leaves this behind.
        clock.flush(perf_counter_ns())

    def tell_total(self):
        """A program that is killed has no end: the total so far is told now and then."""
        self.total_at = perf_counter_ns() + TOTAL_S * 1e9
        if self.baseline is not None:
            saved = saved_s(self.kept) + self.budget.won_s - self.budget.spent_s
            facts = {"saved_s": saved, "spent_s": self.budget.spent_s, "baseline_s": self.baseline}
            clock.fact("auto.total", {**{key: round(value, 6) for key, value in facts.items()}, "steps": clock.words[W_STEPS], "kept": len(self.kept)})

    def why_not_tried(self, change):
        """Why the program ended before its turn."""
        if change.key in self.without:
            return "excluded"
        return "too-short" if change.is_refused or self.can_guard(change) else "loss-unknown"

    def ended(self):
        for one in self.waiting:
            if one.setting not in self.tried and self.change is None:
                self.tell(one, "left-alone", self.why_not_tried(one))
        self.tell_total()
        for one in [*self.kept, self.change]:
            if one is not None:
                one.end()
