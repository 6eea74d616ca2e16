"""Gradients that no optimizer uses."""

import pytest

from conftest import need

torch = need("torch")

from torch import nn  # noqa: E402

from _flatout_probe import arithmetic, discarded, raw  # noqa: E402
from _flatout_probe.patches import optimizer  # noqa: E402


@pytest.fixture(autouse=True)
def learned():
    raw.learn(torch)


def told(detach, monkeypatch, critic_steps=3, **options):
    """What is reported of a generator and its critic."""
    torch.manual_seed(0)
    generator, critic = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16)), nn.Linear(16, 1)
    makers = [torch.optim.Adam(part.parameters(), **options) for part in (critic, generator)]
    facts = {}
    monkeypatch.setattr(optimizer, "known", lambda: makers)
    monkeypatch.setattr(discarded, "fact", lambda key, value, scope, place: facts.update({key: (value, place)}))
    discarded.start()

    for _ in range(4):
        for _ in range(critic_steps):
            fake = generator(torch.randn(4, 8))
            makers[0].zero_grad()
            loss = critic(fake.detach() if detach else fake).mean()
            discarded.began([loss.grad_fn], arithmetic.operator)
            loss.backward()
            makers[0].step()
        makers[1].zero_grad()
        loss = -critic(generator(torch.randn(4, 8))).mean()
        discarded.began([loss.grad_fn], arithmetic.operator)
        loss.backward()
        makers[1].step()
    discarded.tell()
    return facts


def test_a_generator_that_is_not_detached_is_told(monkeypatch):
    share, place = told(False, monkeypatch)["backward.discarded"]
    # All but the critic's own layer.
    assert 0.9 < share < 1 and place["file"] == __file__


def test_a_detached_one_is_not(monkeypatch):
    assert told(True, monkeypatch) == {}


def test_an_optimizer_whose_steps_cannot_be_seen_is_left_out(monkeypatch):
    assert told(False, monkeypatch, fused=True) == {}


def test_nothing_is_watched_with_one_optimizer(monkeypatch):
    one = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    monkeypatch.setattr(optimizer, "known", lambda: [one])
    discarded.start()
    assert not discarded.watching()
