"""The loss guard of `--auto --allow`."""

import random
import types

import pytest

from conftest import need

torch = need("torch")

from _flatout_apply import auto  # noqa: E402
from _flatout_apply import losses as guarded  # noqa: E402
from _flatout_apply.losses import hurt  # noqa: E402


def losses(begin, end, count=60, noise=0.05):
    made = random.Random(1)
    return [begin + (end - begin) * at / count + made.gauss(0, noise) for at in range(count)]


def test_falling_losses_are_good():
    assert hurt(losses(2.0, 1.8), losses(1.8, 1.6)) is False


def test_noise_is_no_harm():
    assert hurt(losses(1.0, 1.0, noise=0.3), losses(1.02, 1.02, noise=0.3)) is False


def test_worse_losses_hurt():
    assert hurt(losses(1.0, 0.9), losses(1.3, 1.4)) is True


def test_losses_that_are_not_numbers_hurt():
    assert hurt(losses(1.0, 0.9), [1.0, float("nan")]) is True
    assert hurt([float("nan")] * 9, [float("nan")] * 9) is not True


def test_a_few_losses_tell_nothing():
    assert hurt([1.0], losses(1.0, 1.0)) is None


@pytest.fixture
def watching(monkeypatch):
    """`Auto` in the middle of a trial that made the steps twice as fast, and the steps since it began."""
    told = []
    made = object.__new__(auto.Auto)
    made.allowed, made.losses, made.losses_after, made.tries = {"precision"}, losses(1.0, 0.9, 20), [], 0
    made.change = types.SimpleNamespace(setting="amp=bf16", changes_numbers=True, is_refused=False, undoes=None, worth=1.0)
    made.trial, made.window = types.SimpleNamespace(steps=0), types.SimpleNamespace(factor=1.0)
    monkeypatch.setattr(auto.clock, "words", {auto.W_STEPS: 0})
    monkeypatch.setattr(made, "keep", lambda now, found: told.append("kept"), raising=False)
    monkeypatch.setattr(made, "take_back", lambda now, reason, found=None: told.append(reason), raising=False)
    monkeypatch.setattr(guarded, "_losses", [])

    def after(count, values):
        auto.clock.words[auto.W_STEPS] += count
        guarded._losses += [torch.tensor(value) for value in values]
        made.decide(0, (1.9, 2.0, 2.1))
        return told

    return made, after


def test_a_change_is_kept_once_enough_losses_were_seen(watching):
    _, after = watching
    assert after(5, losses(0.9, 0.9, 5)) == []
    assert after(5, losses(0.9, 0.9, 5)) == ["kept"]


def test_a_change_whose_losses_nobody_sees_is_not_kept(watching):
    _, after = watching
    assert after(auto.GUARDED - 1, []) == []
    assert after(1, []) == ["loss-unknown"]


def test_a_change_that_hurts_is_not_kept(watching):
    _, after = watching
    assert after(9, losses(3.0, 3.0, 9)) == ["hurts-loss"]


def test_no_change_is_made_before_losses_were_seen(watching):
    made, _ = watching
    made.losses, made.tried, made.waiting = [], set(), []
    assert made.begin(0, made.change) is False and made.tried == set()
    guarded._losses[:] = [torch.tensor(1.0)] * 5
    assert made.begin(0, made.change) is False and len(made.losses) == 5
    # Those of the next steps are added to these.
    guarded._losses[:] = [torch.tensor(1.0)] * 3
    made.learn_losses(made.change)
    assert made.can_guard(made.change)
