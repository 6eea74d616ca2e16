"""`flatout run --auto`: the same samples in the same order and the same losses, bit by bit; what it changed and why it did not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import FLATOUT, TESTS, environment, flatout, need

need("torch")

PROGRAM = str(TESTS / "auto_programs.py")


def auto(folder, name, steps, *options, **more):
    """What a program writes alone and under `--auto`, and what flatout printed."""
    flatout()
    command = [sys.executable, PROGRAM, name, str(steps)]
    alone = subprocess.run([*command, "alone.log"], cwd=folder, env=environment(folder, **more), capture_output=True, text=True, timeout=300)
    before = [str(FLATOUT), "run", "--auto", *options, "--"]
    done = subprocess.run([*before, *command, "auto.log"], cwd=folder, env=environment(folder, **more), capture_output=True, text=True, timeout=300)
    assert alone.returncode == 0, alone.stderr
    return (folder / "alone.log").read_text(), (folder / "auto.log").read_text(), done


def changes(folder):
    (record,) = (folder / "home/runs").iterdir()
    facts = [json.loads(line) for line in (record / "facts.jsonl").read_text().splitlines()]
    notes = (record / "events.jsonl").read_text()
    assert "probe turned off" not in notes, notes
    return [fact["value"] for fact in facts if fact["key"].startswith("auto.") and fact["key"] != "auto.total"]


def tried(folder, name, steps, setting, *options):
    """A run long enough for a trial of `setting` to end. How long that takes depends on the machine's load, so a run
    that is over too early is repeated with more steps; its results are checked all the same."""
    for attempt in range(3):
        place = folder / str(attempt)
        place.mkdir()
        alone, changed, done = auto(place, name, steps * 3**attempt, *options)
        assert done.returncode == 0 and done.stdout == "done\n", done.stderr
        found = [change for change in changes(place) if change["setting"].startswith(setting)]
        if not options:
            assert len(alone.splitlines()) == steps * 3**attempt and alone == changed
        if len(found) > 1:
            break
    return alone, changed, done, found


@pytest.mark.parametrize("name, steps, setting", [("sleepy", 400, "loader.num_workers="), ("sleepy_with_a_worker", 500, "loader.num_workers="), ("counting", 400, "loader.num_workers="), ("columns", 15000, "loader.batched=on")])
def test_changes_leave_results_alone(tmp_path, name, steps, setting):
    """Whether a change is kept depends on how busy the machine is; the results do not."""
    _, _, done, found = tried(tmp_path, name, steps, setting)
    assert [change["state"] for change in found[:2]] in (["tried", "kept"], ["tried", "taken-back"]), (found, done.stderr)
    low, middle, high = found[1]["gain"]
    assert 0 < low <= middle <= high
    assert setting in done.stderr and ("changes kept:" in done.stderr or "--auto changed nothing" in done.stderr)


REASONS = {
    "noisy": "draws-random",
    "noisy_with_a_worker": "draws-random",
    "asking": "asks-for-worker",
    "streamed": "iterable",
    "own_loader": "own-loader",
    "own_sampler": "own-sampler",
    "own_init": "own-worker-init",
}


@pytest.mark.parametrize("name", REASONS)
def test_what_cannot_stay_the_same_is_left_alone(tmp_path, name):
    # How many steps pass before the workers' turn comes depends on the machine: a run that is over too early is repeated with more.
    for attempt in range(3):
        place = tmp_path / str(attempt)
        place.mkdir()
        alone, changed, done = auto(place, name, 500 * 3**attempt)
        assert done.returncode == 0 and alone == changed
        found = changes(place)
        reasons = [change.get("reason") for change in found if change["setting"].startswith("loader.num_workers")]
        if set(reasons) - {"too-short"}:
            break
    assert REASONS[name] in reasons, (found, done.stderr)
    assert not [change for change in found if change["state"] == "kept" and change["setting"].startswith("loader.")]


def test_larger_batches_are_tried_where_they_are_allowed(tmp_path):
    alone, changed, done, found = tried(tmp_path, "sleepy", 300, "loader.batch_size=16", "--allow", "batch", "--without", "num_workers")
    assert len(alone.splitlines()) == len(changed.splitlines())
    assert [change["state"] for change in found[:2]] in (["tried", "kept"], ["tried", "taken-back"]), (found, done.stderr)
    # The steps before it are the program's own.
    before = found[0]["step"] - 1
    assert alone.splitlines()[:before] == changed.splitlines()[:before] and alone != changed


def test_settings_can_be_left_out(tmp_path):
    alone, changed, done = auto(tmp_path, "sleepy", 200, "--without", "num_workers")
    assert alone == changed and "excluded with --without" in done.stderr


def test_kinds_that_do_not_exist_are_refused(tmp_path):
    flatout()
    done = subprocess.run([str(FLATOUT), "run", "--auto", "--allow", "speed", "--", "true"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2 and "choose from: precision" in done.stderr


def test_a_program_that_dies_gets_the_command_without_the_change(tmp_path):
    flatout()
    # The program names itself to its workers, which kill it.
    start = "import os, sys; os.environ.update(MAIN=str(os.stat('/proc/self').st_ino), PROGRAM=str(os.getpid())); sys.argv = sys.argv[1:]; exec(open(sys.argv[0]).read())"
    command = [sys.executable, "-c", start, PROGRAM, "fatal", "400", "auto.log"]
    done = subprocess.run([str(FLATOUT), "run", "--auto", "--", *command], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=200)
    assert done.returncode == -signal.SIGKILL
    assert "killed by signal 9" in done.stderr and "flatout run --auto --without loader.num_workers --" in done.stderr


def test_ctrl_c_ends_it_as_it_would_alone(tmp_path):
    flatout()
    found = []
    for before in ([], [str(FLATOUT), "run", "--auto", "--"]):
        log = tmp_path / ("auto.log" if before else "alone.log")
        command = [*before, sys.executable, PROGRAM, "sleepy", "100000", str(log)]
        program = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        until = time.monotonic() + 60
        while time.monotonic() < until and (not log.exists() or len(log.read_text().splitlines()) < 250):
            time.sleep(0.2)
        os.killpg(program.pid, signal.SIGINT)
        out, errors = program.communicate(timeout=60)
        found.append((program.returncode, out, errors))
    (alone, _, alone_errors), (watched, _, errors) = found
    assert watched == alone and alone_errors.strip().endswith("KeyboardInterrupt")
    # One KeyboardInterrupt, the program's: its workers say nothing.
    assert errors.count("KeyboardInterrupt") == 1 and "DataLoader worker (pid" not in errors
    one, other = ((tmp_path / name).read_text().splitlines() for name in ("alone.log", "auto.log"))
    shared = min(len(one), len(other)) - 1
    assert shared > 200 and one[:shared] == other[:shared]
