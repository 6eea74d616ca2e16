"""How a change is judged: kept where the lower end of its gain is above 1, else taken back."""

import array

import pytest

from conftest import need

torch = need("torch")

from _flatout_apply import auto, window  # noqa: E402
from _flatout_apply.changes import copies  # noqa: E402
from _flatout_apply.changes.change import Change  # noqa: E402
from _flatout_probe.ring import W_STEPS, W_SUMS  # noqa: E402


class Words(list):
    """The counters, as the probe keeps them."""

    def __getitem__(self, at):
        found = super().__getitem__(at)
        return array.array("q", found) if isinstance(at, slice) else found


@pytest.fixture(autouse=True)
def words(monkeypatch):
    made = Words([0] * 64)
    monkeypatch.setattr(auto.clock, "words", made)
    return made


def steps(times, **more):
    """A window over steps that took these milliseconds."""
    made, now = window.Window(**more), 1_000_000
    made.stepped(now)
    for taken in times:
        now += int(taken * 1e6)
        auto.clock.words[W_STEPS] += 1
        made.stepped(now)
    return made


def test_gain_of_steady_steps():
    low, middle, high = window.gain(steps([20.0] * 100), steps([10.0] * 200))
    assert low == pytest.approx(2) and middle == pytest.approx(2) and high == pytest.approx(2)


def test_noise_widens_the_interval():
    low, middle, high = window.gain(steps([10, 30, 20, 10] * 10 + [40] * 10), steps([9, 25, 20, 14] * 12))
    assert low < 1 < high


def test_enough_needs_seconds_and_steps():
    assert not steps([10.0] * 100).enough()
    assert not steps([100.0] * 15).enough() and steps([100.0] * 16).enough()
    assert not steps([1000.0] * 4).enough() and steps([1000.0] * 5).enough()


def test_a_large_difference_is_clear_after_few_steps():
    before = steps([100.0] * 20)
    assert window.clear(before, steps([10.0] * 4)) is None and window.clear(before, steps([99.0] * 15)) is None
    assert window.clear(before, steps([60.0] * 6))[0] > 1.05 and window.clear(before, steps([150.0] * 6))[2] < 0.95


def test_readings_are_few_however_long_it_takes():
    made, rolling = steps([10.0] * 1000), steps([10.0] * 1000, rolling=True)
    assert len(made.readings) <= window.READINGS and made.seconds() == pytest.approx(10.0) and made.step_s() == pytest.approx(0.01)
    assert len(rolling.readings) == window.READINGS and 2 < rolling.seconds() < 5


def test_evaluations_do_not_count(words):
    made = steps([10.0] * 10)
    words[W_STEPS] += 1
    words[W_SUMS + auto.clock.EVAL] += 5_000_000_000
    made.stepped(1_000_000 + 11 * 10_000_000 + 5_000_000_000)
    assert made.step_s() == pytest.approx(0.01)


class Recorded(Change):
    def __init__(self):
        super().__init__("gc.freeze", "on", 2.0)
        self.done, self.broken = [], None

    def put(self):
        self.done.append("put")

    def back(self):
        self.done.append("back")

    def failed(self):
        return self.broken


@pytest.fixture
def running(monkeypatch):
    """The controller after its baseline of 20 ms per step, with one change to try."""
    made = auto.Auto.__new__(auto.Auto)
    made.allowed, made.without, made.kept, made.tried, made.losses, made.outcomes = set(), set(), [], set(), [], []
    made.last, made.cpus, made.baseline, made.waiting, made.look_at, made.scale = -1, 2, 0.02, [], 0, 1.0
    made.change, made.window, made.told, made.budget, made.settled, made.idle = None, None, [], auto.Budget(), 0, False
    change = Recorded()
    monkeypatch.setattr(auto.changes, "candidates", lambda one: [] if change.setting in one.tried else [change])
    monkeypatch.setattr(made, "tell", lambda change, state, reason=None, found=None: made.told.append((state, reason)), raising=False)
    monkeypatch.setattr(auto.clock, "after_some_steps", [made.stepped])
    made.before = steps([20.0] * 100)
    made.now = made.before.readings[-1][0]
    made.budget.first_ns = 1
    return made, change


def run(made, milliseconds, count=2000):
    """Steps until the change is decided; then the rest of the watching."""
    for _ in range(count):
        if made.stepped not in auto.clock.after_some_steps:
            return
        made.now += int((milliseconds if made.change is not None else 20) * 1e6)
        auto.clock.words[W_STEPS] += 1
        made.step(made.now)


@pytest.mark.parametrize("milliseconds, told, done", [(10, ("kept", None), ["put"]), (20, ("taken-back", "no-gain"), ["put", "back"]), (40, ("taken-back", "slower"), ["put", "back"])])
def test_changes_are_kept_or_taken_back(running, milliseconds, told, done):
    made, change = running
    run(made, milliseconds)
    assert made.told == [("tried", None), told] and change.done == done
    # Nothing is left to try: the steps run without us, unless there is something to doubt later.
    assert auto.clock.after_some_steps == ([made.stepped] if told[0] == "kept" else [])


def go_on(made, seconds, milliseconds):
    """Steps that take as long as `milliseconds` tells, by whether the change is in force."""
    until = made.now + seconds * 1e9
    while made.now < until and made.stepped in auto.clock.after_some_steps:
        inside = made.change is None or made.change.undoes is None
        made.now += int(milliseconds(inside) * 1e6)
        auto.clock.words[W_STEPS] += 1
        made.step(made.now)


def kept_change(running):
    made, change = running
    go_on(made, 10, lambda inside: 10)
    assert made.told[-1] == ("kept", None) and made.kept == [change]
    return made, change


def test_a_kept_change_that_becomes_slower_is_dropped(running):
    made, change = kept_change(running)
    go_on(made, 60, lambda inside: 30 if inside else 20)
    assert made.told[2:] == [("taken-back", "slower-later")] and change.done == ["put", "back"] and not made.kept
    assert auto.clock.after_some_steps == [] and change.setting not in [setting for setting, _ in made.outcomes[1:]]


def test_a_kept_change_is_doubted_once(running):
    """The program itself became slower: without the change it would be slower still."""
    made, change = kept_change(running)
    go_on(made, 60, lambda inside: 30 if inside else 60)
    assert len(made.told) == 2 and change.done == ["put", "back", "put"] and made.kept == [change]
    assert auto.clock.after_some_steps == []


def test_a_kept_change_that_cannot_come_back_is_named(running):
    made, change = kept_change(running)
    change.put = lambda: "no-memory"
    go_on(made, 60, lambda inside: 30 if inside else 60)
    assert made.told[2:] == [("taken-back", "no-memory")] and not made.kept


def test_a_kept_change_is_not_doubted_without_a_reason(running):
    made, change = kept_change(running)
    go_on(made, 60, lambda inside: 12)
    assert change.done == ["put"] and made.kept == [change]


def test_a_slow_change_is_taken_back_within_a_second(running):
    made, change = running
    run(made, 100, count=13)
    assert made.told[-1] == ("taken-back", "slower") and 0 < made.budget.spent_s < 1


def test_a_trial_that_cannot_be_paid_waits(running):
    made, change = running
    change.cost_s, change.predicted = 0.5, False
    run(made, 10, count=500)
    assert not made.told and (made.now - made.budget.first_ns) / 1e9 > 10
    run(made, 10, count=4000)
    assert made.told == [("tried", None), ("kept", None)] and (made.now - made.budget.first_ns) / 1e9 > 0.5 / auto.Budget.SHARE


def test_a_promise_pays_for_its_trial(running):
    made, change = running
    change.cost_s, change.predicted = 0.1, True
    run(made, 10, count=3)
    assert made.told == [("tried", None)]


@pytest.mark.parametrize("milliseconds, told", [(24, ("kept", None)), (39.9, ("taken-back", "no-gain")), (60, ("taken-back", "slower"))])
def test_larger_batches_are_measured_by_their_samples(running, milliseconds, told):
    made, change = running
    change.scale, change.worth = 2, 1.05
    run(made, milliseconds)
    assert made.told == [("tried", None), told] and made.scale == (2 if told[0] == "kept" else 1)


def test_a_short_run_bets_little_on_a_promise():
    change = Recorded()
    change.expected, change.predicted = 1e9, True
    made = auto.Budget()
    for seconds, most in ((5, 0.17), (12, 0.25), (15, 0.29)):
        assert made.allowed_s(seconds * 1e9, change, []) < most
    assert made.allowed_s(60e9, change, []) > 5


def test_what_a_trial_cost_is_not_spent_again(running):
    made, change = running
    change.cost_s = 0.03
    made.budget.spent_s = 1.0
    run(made, 10, count=1000)
    assert not made.told


def test_a_change_that_breaks_is_taken_back_at_once(running):
    made, change = running
    run(made, 10, count=1)
    change.broken = "workers-die"
    run(made, 10, count=1)
    assert made.told[-1] == ("taken-back", "workers-die") and change.done == ["put", "back"]


def test_a_kept_change_that_breaks_later_is_taken_back(running, monkeypatch):
    made, change = running
    run(made, 10)
    facts = []
    monkeypatch.setattr(auto.clock, "fact", lambda key, value: facts.append((key, value["state"], value["reason"])))
    made.look_after()
    assert not facts
    change.broken = "workers-die"
    made.look_after()
    made.look_after()
    assert facts == [("auto.gc.freeze", "taken-back", "workers-die")] and change.done == ["put", "back"] and not made.kept


class Pinned(torch.Tensor):
    """On a machine without a GPU: a tensor that is taken for a pinned one."""

    @staticmethod
    def made(*shape):
        return torch.ones(*shape).as_subclass(Pinned)

    def is_pinned(self):
        return True


def test_pinned_batches_are_copied_without_waiting_until_one_is_written_into():
    from types import SimpleNamespace

    asked = []
    change = copies.Overlapped(SimpleNamespace(torch=torch), 1.1)
    copy = change.without_waiting(lambda tensor, *args, **kwargs: asked.append(kwargs.get("non_blocking")))
    copy(torch.ones(2), "cuda")
    batches = [Pinned.made(2) for _ in range(40)]
    for batch in batches[:20]:
        copy(batch, "cuda")
    assert asked == [None] + [True] * 20 and change.failed() is None
    batches[19].add_(1)
    for batch in batches[20:]:
        copy(batch, "cuda")
    assert change.failed() == "writes-into-batch" and asked[-1] is None and len(change.copied) <= copies.LOOKED_AT + 1
    copy(Pinned.made(2), "cuda", non_blocking=False)
    assert asked[-1] is False
