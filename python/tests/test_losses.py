"""The loss guard of `--auto --allow`."""

import random

from conftest import need

need("torch")

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
