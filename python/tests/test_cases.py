"""Programs with torch behave under `flatout run` as they do alone: exit code, output, warnings, tracebacks, pickles, calls."""

import pytest

from conftest import TESTS, parts

FILES = sorted(path.name for path in (TESTS / "cases").glob("*.py"))


@pytest.mark.parametrize("awake", [False, True], ids=["cpu", "cuda"])
@pytest.mark.parametrize("file, name", [pytest.param(file, name, marks=pytest.mark.xdist_group(file)) for file in FILES for name in parts(file)[1]])
def test_same(batches, file, name, awake):
    alone, watched = batches(file, awake)
    assert watched[name] == alone[name]
    assert "<flatout>" not in alone[name][2] + watched[name][2]
