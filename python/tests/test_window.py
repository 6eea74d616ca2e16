"""How a change is judged: kept where the lower end of its gain is above 1, else taken back."""

import pytest

torch = pytest.importorskip("torch")

from _flatout_apply import auto, window  # noqa: E402
from _flatout_apply.changes import copies  # noqa: E402
from _flatout_apply.changes.change import Change  # noqa: E402


def steps(times, factor=1.0):
    """A window over steps that took these milliseconds."""
    made, now = window.Window(factor), 1_000_000
    made.stepped(now)
    for taken in times:
        now += int(taken * 1e6)
        made.stepped(now)
    return made


def test_gain_of_steady_steps():
    low, middle, high = window.gain(steps([20.0] * 100), steps([10.0] * 200))
    assert low == pytest.approx(2) and middle == pytest.approx(2) and high == pytest.approx(2)


def test_noise_widens_the_interval():
    low, middle, high = window.gain(steps([10, 30, 20, 10] * 10 + [40] * 10), steps([9, 25, 20, 14] * 12))
    assert low < 1 < high


def test_enough_needs_seconds_and_steps():
    assert not steps([10.0] * 100).seconds() >= window.ENOUGH_S
    made = steps([100.0] * 15)
    assert made.stepped(int(1e6 + 16 * 100e6)) and len(made.each) == window.ENOUGH


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
    made.allowed, made.without, made.kept, made.tried, made.losses = set(), set(), [], set(), []
    made.before = made.baseline = steps([20.0] * 100)
    made.change, made.window, made.told = None, None, []
    change = Recorded()
    monkeypatch.setattr(auto.changes, "candidates", lambda one: [] if change.setting in one.tried else [change])
    monkeypatch.setattr(made, "tell", lambda change, state, reason=None, found=None: made.told.append((state, reason)), raising=False)
    monkeypatch.setattr(auto.clock, "after_step", [made.stepped])
    made.next_change(0)
    return made, change


def run(made, milliseconds, count=2000):
    now = 1_000_000_000
    for _ in range(count):
        if made.change is None:
            return
        now += int(milliseconds * 1e6)
        made.judge(now)


@pytest.mark.parametrize("milliseconds, told, done", [(10, ("kept", None), ["put"]), (20, ("taken-back", "no-gain"), ["put", "back"]), (40, ("taken-back", "slower"), ["put", "back"])])
def test_changes_are_kept_or_taken_back(running, milliseconds, told, done):
    made, change = running
    run(made, milliseconds)
    assert made.told == [("tried", None), told] and change.done == done
    # Nothing is left to try: the steps run without us.
    assert auto.clock.after_step == []


def test_a_slow_change_is_taken_back_within_a_second(running):
    made, change = running
    run(made, 100, count=12)
    assert made.told[-1] == ("taken-back", "slower")


def test_a_change_that_breaks_is_taken_back_at_once(running):
    made, change = running
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
