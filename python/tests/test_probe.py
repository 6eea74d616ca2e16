"""The probe's own parts."""

import gc
import sys
import textwrap
import types

import pytest

from conftest import need

torch = need("torch")

from _flatout_probe import clock, guard, raw, weave  # noqa: E402
from _flatout_probe.patches import garbage, sync  # noqa: E402

SOURCE = '''
import os


class Thing:
    def work(self, value):
        """Doubles."""
        if value < 0:
            raise ValueError(
                value
            )
        return os.path.join("a", self.twice(value))

    def twice(self, value):
        return str(value * 2)

    def quiet(self):
        self.done = True
'''


@pytest.fixture
def thing(tmp_path):
    path = tmp_path / "thing.py"
    path.write_text(SOURCE)
    module = types.ModuleType("thing")
    exec(compile(SOURCE, str(path), "exec"), module.__dict__)
    return module.Thing


def test_woven_functions_stay_themselves(thing):
    seen, before = [], thing.work
    lines = thing.work.__code__.co_firstlineno, thing.work.__code__.co_argcount
    woven = weave.weave(
        thing.work,
        ("self", "value"),
        enter=lambda self, value: seen.append(("enter", value)),
        leave=lambda self, value, result: seen.append(("leave", result)) or result,
        fail=lambda self, value: seen.append(("fail", sys.exc_info()[0])),
    )
    assert thing().work(3) == "a/6" and thing.work is before
    assert (thing.work.__code__.co_firstlineno, thing.work.__code__.co_argcount) == lines
    with pytest.raises(ValueError) as error:
        thing().work(-1)
    assert seen == [("enter", 3), ("leave", "a/6"), ("enter", -1), ("fail", ValueError)]
    trace = error.value.__traceback__.tb_next
    assert (trace.tb_lineno, trace.tb_next) == (9, None)
    woven.rest()
    assert thing().work(1) == "a/2" and len(seen) == 4
    assert woven.raw(thing(), 2) == "a/4"


def test_woven_functions_without_a_return(thing):
    seen = []
    weave.weave(thing.quiet, leave=lambda self, result: seen.append(result))
    thing().quiet()
    assert seen == [None]


def test_arguments_and_calls_are_replaced(thing):
    weave.weave(thing.work, argument_of="twice", argument=lambda value: value + 1)
    assert thing().work(3) == "a/8"
    weave.done()
    weave.weave(thing.twice, (), instead_of="nothing", instead=None)
    assert thing().twice(1) == "2"


def test_other_sources_are_left_alone(thing, tmp_path):
    weave.done()
    (tmp_path / "thing.py").write_text(SOURCE.replace("value * 2", "value * 3"))
    assert weave.weave(thing.twice, leave=lambda self, result: None) is None
    assert thing().twice(1) == "2"
    weave.done()
    (tmp_path / "thing.py").unlink()
    assert weave.weave(thing.twice, leave=lambda self, result: None) is None
    assert weave.weave(len) is None


@pytest.fixture
def on():
    guard.off = False
    yield
    guard.off = False
    guard.told.clear()


def test_errors_of_the_probe_turn_it_off(on):
    assert guard.quietly(int)("x") is None and guard.off and "ValueError" in guard.told[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ends_of_the_program_pass(on, error):
    @guard.quietly
    def hook():
        raise error

    with pytest.raises(error):
        hook()
    assert not guard.off


def test_errors_of_a_signal_handler_pass(on, tmp_path):
    scope = {}
    exec(compile(textwrap.dedent("def handler():\n    raise ValueError"), str(tmp_path / "user.py"), "exec"), scope)
    with pytest.raises(ValueError) as caught:
        guard.quietly(scope["handler"])()
    assert not guard.off
    assert [str(entry.path) for entry in caught.traceback[1:]] == [str(tmp_path / "user.py")]


def test_sizes_of_batches():
    raw.learn(torch)
    row = torch.ones(3, 2)
    assert raw.batch_size(row) == 3 and raw.batch_size([row, 1]) == 3 and raw.batch_size({"x": (row,)}) == 3
    assert raw.batch_size(["a", "b"]) == 2 and raw.batch_size(torch.tensor(1.0)) == 0 and raw.batch_size(object()) == 0
    assert raw.batch_size(row.numpy()) == 3


def test_parameters_are_found_without_asking():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.two = torch.nn.Linear(2, 2)

        def parameters(self):
            raise AssertionError

        def modules(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

    raw.learn(torch)
    assert len(raw.parameters(Model())) == 2 and len(raw.modules(Model())) == 2


class Asked:
    """Notes what the probe makes of the instruction that asks for the method."""

    def __get__(self, thing, owner=None):
        frame = sys._getframe(1)
        thing.seen.append((sync.calls(frame), sync.converts(frame), sync.keeps(frame)))
        return lambda *args, **kwargs: True


class Thing:
    to = Asked()
    __bool__ = Asked()

    def __init__(self):
        self.seen = []


CALLED, KEPT, CONVERTED, UNCLEAR = (True, True, False), (False, False, True), (False, True, True), (False, False, False)
# Up to Python 3.10 a call with keywords asks for the method as an attribute.
BY_KEYWORD = CALLED if sys.version_info >= (3, 11) else UNCLEAR


@pytest.mark.parametrize(
    "use, expected",
    [
        (lambda x: x.to(), CALLED),
        (lambda x: x.to(1 if x else 2, [3]), CALLED),
        (lambda x: x.to(1, copy=True), BY_KEYWORD),
        (lambda x: x.to(len([x]), copy=max(1, len([2])), other={"a": x.seen[0]}), BY_KEYWORD),
        (lambda x: x.to(*[1]), UNCLEAR),
        (lambda x: x.to(1, **{"copy": True}), UNCLEAR),
        (lambda x: x.to, KEPT),
        (lambda x: [x.to, x.to], KEPT),
        (lambda x: id(x.to), KEPT),
        (lambda x: print(x.to, end="\n"), KEPT),
        (lambda x: x.to == 1, KEPT),
        (lambda x: {"a": x.to}["a"](), KEPT),
        (lambda x: getattr(x, "to")(), KEPT),
        (lambda x: bool(x), CONVERTED),
        (lambda x: not x, CONVERTED),
        (lambda x: 1 if x else 2, CONVERTED),
    ],
)
def test_bytecode_tells_calls_from_kept_methods(use, expected):
    sync._opcode = __import__("opcode")
    thing = Thing()
    use(thing)
    assert thing.seen[0] == expected


def test_collections_are_counted_and_no_handler_runs_in_the_callback():
    garbage.install(None)
    try:
        before, known = garbage.totals(), sum(stage["collections"] for stage in gc.get_stats())
        for _ in range(5):
            gc.collect()
        (number, spent), passed = garbage.totals(), sum(stage["collections"] for stage in gc.get_stats()) - known
        assert number - before[0] == passed and spent > before[1]
    finally:
        gc.callbacks.pop()
        clock.flushers.remove(garbage.flush)
