"""`--auto` under Hugging Face Trainer, Accelerate and Lightning, with the real packages."""

import subprocess
import sys

import pytest

from conftest import FLATOUT, TESTS, environment, flatout, need
from test_auto import changes

PACKAGES = {"accelerate": "accelerate", "trainer": "transformers", "lightning": "lightning"}


@pytest.mark.parametrize("name", PACKAGES)
def test_losses_stay_the_same(tmp_path, name):
    need(PACKAGES[name])
    flatout()
    command = [sys.executable, str(TESTS / "auto_frameworks.py"), name, "450"]
    for before, log in (([], "alone.log"), ([str(FLATOUT), "run", "--auto", "--"], "auto.log")):
        done = subprocess.run([*before, *command, log], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
    alone, changed = ((tmp_path / log).read_text() for log in ("alone.log", "auto.log"))
    assert len(alone.splitlines()) == 450 and alone == changed
    tried = [change["setting"] for change in changes(tmp_path) if change["state"] == "tried"]
    assert any(setting.startswith("loader.num_workers=") for setting in tried), done.stderr
