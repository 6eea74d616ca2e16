"""Runs programs alone and under `flatout run`."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLATOUT = Path(os.environ.get("FLATOUT_BIN") or ROOT / "target/debug/flatout")
TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))


# The probe as on a machine with a GPU, with every tensor taken for one on the device.
# It is code of another file than the program: programs that trace themselves must not see the stand-in for torch's `is_cuda`.
_AWAKE = """
import sys
if "_flatout_probe.patches.sync" in sys.modules:
    sync = sys.modules["_flatout_probe.patches.sync"]
    sync._is_cuda = lambda tensor: True
    sync.device_awake()
    assert not sys.modules["_flatout_probe.guard"].off, sys.modules["_flatout_probe.guard"].told
"""
AWAKE = "exec(compile(%r, '<awake>', 'exec'), {})\n" % _AWAKE


# A shell that starts tests in the background lets them ignore these, and every program would inherit it.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def need(module):
    """The module. A missing one fails the test, unless FLATOUT_ALLOW_MISSING names it: `cargo xtask venv` installs them all."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return missing(module, f"{module} is missing: cargo xtask venv")


def missing(tool, why):
    """Fails the test, unless FLATOUT_ALLOW_MISSING names the tool."""
    if tool in [name.strip() for name in os.environ.get("FLATOUT_ALLOW_MISSING", "").split(",")]:
        pytest.skip(why, allow_module_level=True)
    pytest.fail(f"{why}; FLATOUT_ALLOW_MISSING={tool} skips the test", pytrace=False)


def flatout():
    assert FLATOUT.exists(), f"no {FLATOUT}: cargo build -p flatout, or set FLATOUT_BIN"
    return [str(FLATOUT), "run", "--quiet", "--"]


def environment(folder, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLATOUT_")}
    kept.update(FLATOUT_HOME=str(folder / "home"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99")
    kept.pop("PYTHONPATH", None)
    kept.update(more)
    return {name: value for name, value in kept.items() if value is not None}


def normal(text):
    """What differs from one process to the next."""
    return re.sub(rb"0x[0-9a-f]{6,}|pid[s(]* *\d+|/pytest-\d+/", b"X", text)


def both(folder, command, **options):
    """Exit code, stdout and stderr of a command, alone and under flatout."""
    more, results = options.pop("env", {}), []
    for before in ([], flatout()):
        done = subprocess.run(
            [*before, *command], cwd=folder, env=environment(folder, **more), capture_output=True, timeout=300, **options
        )
        results.append((done.returncode, normal(done.stdout), normal(done.stderr)))
    return results


def parts(file):
    """The cases of a file, by name; what is before the first one comes before each."""
    common, *found = re.split(r"^# case: (\w+)\n", (TESTS / "cases" / file).read_text(), flags=re.M)
    return common, dict(zip(found[::2], found[1::2]))


@pytest.fixture(scope="session")
def batches(tmp_path_factory):
    """The results of all cases of a file, each in a process of its own forked from one that has imported torch."""
    known = {}

    def results(file, awake):
        if (file, awake) not in known:
            folder, found = tmp_path_factory.mktemp(Path(file).stem), []
            known[file, awake] = found
            common, cases = parts(file)
            common = (AWAKE if awake else "") + common
            for way, before in (("alone", []), ("with", flatout())):
                # The same path for both: it is in tracebacks.
                (folder / "cases").mkdir()
                (folder / "cases.json").write_text(json.dumps({"common": common, "cases": cases}))
                command = [*before, sys.executable, str(TESTS / "batch.py"), "cases.json"]
                subprocess.run(command, cwd=folder, env=environment(folder), timeout=600, check=True)
                found.append(json.loads((folder / "results.json").read_text()))
                (folder / "cases").rename(folder / way)
        return known[file, awake]

    return results
