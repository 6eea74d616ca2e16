"""`flatout run --auto`: watches the first steps, puts settings in force while the program runs, measures each against what was before,
and keeps or takes it back. By default only settings that leave results alone.

Everything runs after an optimizer's step, on the training thread. One change at a time: put in force, some steps to settle, then a window
of steps. A change stays when the lower end of its gain's interval is above 1.
"""

import json
import os
import weakref
from time import perf_counter_ns

from _flatout_probe import clock, guard
from _flatout_probe.patches import loader as watched
from _flatout_probe.ring import W_STEPS

from . import changes, losses, observe
from .changes import zero
from .changes.shapes import Shapes
from .control import Control
from .window import Window, gain

# Steps before the baseline: the first ones fill caches. Of slow steps, the seconds are enough.
WARM, WARM_S, WARM_LEAST = 8, 3.0, 3
# Below this gain a change is not worth keeping.
WORTH = 1.01
# Windows of a change that is neither better nor worse, each longer than the one before.
TRIES = 2
# A trial that is this much slower is ended at once, after so many steps and seconds.
SLOWER, SLOWER_STEPS, SLOWER_S = 0.8, 4, 0.5

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
        self.steps, self.first_ns, self.window, self.before = 0, 0, None, None
        self.change, self.tries, self.settle, self.losses = None, 0, 0, []
        self.kept, self.baseline, self.iterators = [], None, {}
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
        self.steps += 1
        self.first_ns = self.first_ns or now
        if self.before is None:
            self.watch(now)
        elif self.change is not None:
            self.judge(now)

    def watch(self, now):
        seconds = (now - self.first_ns) / 1e9
        if self.window is None:
            zero.stepped()
            if self.steps >= WARM or (self.steps >= WARM_LEAST and seconds >= WARM_S):
                # What was looked at until now would slow the baseline down.
                observe.done()
                zero.done()
                self.window = Window()
                self.window.stepped(now)
                changes.watch()
        elif self.window.stepped(now):
            self.before = self.baseline = self.window
            self.losses = losses.take()
            watched.on_got.remove(self.shapes.batch_came)
            self.next_change(now)

    def next_change(self, now):
        """Puts the next change in force; where none is left, the watching ends."""
        while True:
            found = changes.candidates(self)
            if not found:
                break
            self.change = found[0]
            self.tried.add(self.change.setting)
            reason = self.put()
            if reason is None:
                self.tell(self.change, "tried")
                self.settle, self.tries = self.change.settle, 0
                if self.allowed:
                    # Those of the steps just before.
                    self.losses = losses.take() or self.losses
                self.window = None
                return
            self.tell(self.change, "left-alone", reason)
        self.change = None
        clock.after_step.remove(self.stepped)

    def put(self):
        """None where the change is in force, else why not."""
        if self.change.key in self.without:
            return "excluded"
        try:
            return self.change.put()
        except changes.LeftAlone as reason:
            return str(reason)

    def judge(self, now):
        reason = self.change.failed()
        if reason is not None:
            self.take_back(now, reason)
            return
        if self.settle > 0:
            self.settle -= 1
            return
        if self.window is None:
            self.window = Window(factor=1.0 + self.tries)
        enough, seconds, steps = self.window.stepped(now), self.window.seconds(), len(self.window.each)
        if not enough:
            if steps >= SLOWER_STEPS and seconds >= SLOWER_S and self.before.step_s() / self.window.step_s() < SLOWER:
                self.take_back(now, "slower", self.measured())
            return
        found = self.measured()
        if self.change.changes_numbers:
            after = losses.take()
            if losses.hurt(self.losses, after):
                self.take_back(now, "hurts-loss", found)
                return
        if found[0] > 1.0 and found[1] >= max(WORTH, self.change.worth):
            self.keep(now, found)
        elif found[2] < 1.0 or self.tries + 1 >= TRIES:
            self.take_back(now, "slower" if found[2] < 1.0 else "no-gain", found)
        else:
            self.tries, self.window = self.tries + 1, None

    def measured(self):
        return gain(self.before, self.window)

    def keep(self, now, found):
        change = self.change
        change.since, change.saved_s_per_step = clock.words[W_STEPS], self.before.step_s() - self.window.step_s()
        self.kept.append(change)
        self.tell(change, "kept", None, found)
        self.before, self.change = self.window, None
        self.next_change(now)

    def take_back(self, now, reason, found=None):
        change, self.change = self.change, None
        change.back()
        self.tell(change, "taken-back", reason, found)
        self.next_change(now)

    def look_after(self, last=False):
        """Once a second: a change that was kept and no longer works is taken back."""
        for change in [one for one in self.kept if one.failed() is not None]:
            self.kept.remove(change)
            change.back()
            clock.fact("auto." + change.key, {"state": "taken-back", "setting": change.setting, "step": clock.words[W_STEPS], "reason": change.failed()})

    def tell(self, change, state, reason=None, found=None):
        value = {"state": state, "setting": change.setting, "step": clock.words[W_STEPS], "reason": reason}
        if found is not None and self.window is not None:
            value["gain"] = [round(one, 4) for one in found]
            value["before_s"], value["after_s"] = round(self.before.step_s(), 6), round(self.window.step_s(), 6)
        clock.fact("auto." + change.key, {key: one for key, one in value.items() if one is not None})
        # A program that dies of it leaves this behind.
        clock.flush(perf_counter_ns())

    def ended(self):
        steps = clock.words[W_STEPS]
        saved_s = sum((steps - one.since) * one.saved_s_per_step for one in self.kept)
        if self.baseline is not None:
            clock.fact("auto.total", {"saved_s": round(saved_s, 3), "steps": steps, "baseline_s": round(self.baseline.step_s(), 6), "kept": len(self.kept)})
        for one in [*self.kept, self.change]:
            if one is not None:
                one.end()
