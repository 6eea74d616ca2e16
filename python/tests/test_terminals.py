"""Programs in a terminal, and signals sent to flatout: what arrives at the program is what arrives when it runs alone."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from conftest import environment, flatout

# Long: a machine under load may take seconds to start Python.
PATIENCE = 60


def in_terminal(folder, command, keys):
    """Exit code and screen of a command that owns a terminal; `keys` are typed once what comes before them is on the screen."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environment(folder, TERM="xterm"))
    shown, waiting, end = b"", list(keys), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([screen], [], [], 0.05)[0]:
            try:
                part = os.read(screen, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        if waiting and waiting[0][0] in shown:
            # The program goes from printing to waiting.
            time.sleep(0.5)
            os.write(screen, waiting.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(screen)
    return status, shown.replace(b"\r", b"")


NO_CORE = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
SCREENS = {
    "terminal": ("import os, sys\nprint(sys.stdout.isatty(), sys.stdin.isatty(), sys.stderr.isatty(), os.get_terminal_size())", []),
    "foreground": ("import os\nprint(os.tcgetpgrp(0) == os.getpgrp(), os.ttyname(0) == os.ttyname(2))", []),
    "bar": ("import sys\nfor i in range(30): sys.stderr.write('\\r%3d%%|%s|' % (i * 3, '#' * i)); sys.stderr.flush()\nprint()", []),
    "input": ("print('hello', input('name? '))", [(b"name? ", b"bob\n")]),
    "end_of_input": ("import sys\nprint('ready', flush=True)\nprint(repr(sys.stdin.read()))", [(b"ready\r\n", b"abc\n\x04")]),
    "password": ("import getpass\nprint(len(getpass.getpass()))", [(b"assword", b"abc\n")]),
    "curses": ("import curses\ncurses.wrapper(lambda screen: (screen.addstr(0, 0, 'hello'), screen.refresh(), curses.napms(100)))", []),
    "interrupt": ("import time\nprint('ready', flush=True)\ntime.sleep(60)", [(b"ready\r\n", b"\x03")]),
    "interrupt_that_is_caught": (
        "import time\ntry: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: print('caught'); raise SystemExit(5)",
        [(b"ready\r\n", b"\x03")],
    ),
    "interrupts_are_counted": (
        "import signal, time\nn = []\nsignal.signal(signal.SIGINT, lambda *_: n.append(1))\nprint('ready', flush=True)\n"
        "while not n: time.sleep(0.01)\ntime.sleep(1)\nprint(len(n))",
        [(b"ready\r\n", b"\x03")],
    ),
    "quit": (NO_CORE + "import time\nprint('ready', flush=True)\ntime.sleep(60)", [(b"ready\r\n", b"\x1c")]),
}


@pytest.mark.parametrize("name", SCREENS)
def test_terminal(tmp_path, name):
    program, keys = SCREENS[name]
    command = [sys.executable, "-c", program]
    alone = in_terminal(tmp_path, command, keys)
    watched = in_terminal(tmp_path, [*flatout(), *command], keys)
    assert watched == alone


SIGNALS = "TERM INT USR1 USR2 HUP QUIT WINCH CONT TSTP TTIN TTOU RTMIN RTMAX PIPE IO PROF VTALRM ALRM XCPU URG".split()


def signaled(folder, command, number):
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.readline()
    process.send_signal(number)
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        out += b"in time"
    return process.returncode, first + out, errors


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_with_a_handler(tmp_path, name):
    number = getattr(signal, "SIG" + name)
    program = (
        f"import signal, time\nseen = []\nsignal.signal({int(number)}, lambda number, _: seen.append(number))\n"
        "print('ready', flush=True)\nwhile not seen: time.sleep(0.01)\ntime.sleep(0.5)\nprint(seen); raise SystemExit(7)"
    )
    command = [sys.executable, "-c", program]
    assert signaled(tmp_path, [*flatout(), *command], number) == signaled(tmp_path, command, number) == (7, b"ready\n[%d]\n" % number, b"")


@pytest.mark.parametrize("name", ["TERM", "INT", "USR1", "HUP", "ALRM", "RTMIN", "PROF"])
def test_signal_without_a_handler(tmp_path, name):
    number = getattr(signal, "SIG" + name)
    program = f"import signal, time\nsignal.signal({int(number)}, signal.SIG_DFL)\nprint('ready', flush=True)\ntime.sleep(60)"
    command = [sys.executable, "-c", program]
    assert signaled(tmp_path, [*flatout(), *command], number) == signaled(tmp_path, command, number) == (-number, b"ready\n", b"")


def test_terminal_that_is_gone(tmp_path):
    """The program gets SIGHUP, once, and both end."""
    program = (
        "import signal, time\nn = []\nsignal.signal(signal.SIGHUP, lambda *_: n.append(1))\nprint('ready', flush=True)\n"
        "while not n: time.sleep(0.01)\ntime.sleep(0.5)\nopen('hung-up', 'w').write(str(len(n)))"
    )
    for before in ([], flatout()):
        (tmp_path / "hung-up").unlink(missing_ok=True)
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(tmp_path)
            command = [*before, sys.executable, "-c", program]
            os.execvpe(command[0], command, environment(tmp_path))
        shown, end = b"", time.monotonic() + PATIENCE
        while b"ready\r\n" not in shown:
            shown += os.read(screen, 100)
        os.close(screen)
        while time.monotonic() < end and not (tmp_path / "hung-up").exists():
            time.sleep(0.05)
        if time.monotonic() >= end:
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert (tmp_path / "hung-up").read_text() == "1"
