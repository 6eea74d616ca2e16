"""Programs of any kind behave under `flatout run` as they do alone: exit codes, signals, streams, options of Python, startup files."""

import io
import os
import resource
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import KEEPS_FRAMES, ROOT, both, environment, flatout

# Not `sys.meta_path`: until torch is imported, the probe's finder is in it.
STATE = "import sys; print(sys.path, sys.flags, sorted(sys.modules), sys.path_hooks, sorted(sys.path_importer_cache))"
VERSIONS = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def same(folder, *command, **options):
    alone, watched = both(folder, [sys.executable, *command], **options)
    assert watched == alone
    return alone


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 127, 128, 130, 139, 254, 255, 256, -1, 300, "'text'", "None"])
def test_exit_codes(tmp_path, code):
    same(tmp_path, "-c", f"import sys; print('x'); sys.stderr.write('e'); sys.exit({code})")


@pytest.mark.parametrize("name", "KILL TERM INT SEGV ABRT PIPE USR1 HUP ALRM XCPU QUIT FPE BUS ILL TRAP SYS VTALRM PROF IO RTMIN RTMAX".split())
def test_deaths_by_signal(tmp_path, name):
    no_core = "import os, resource, signal; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    default = f"signal.signal(signal.SIG{name}, signal.SIG_DFL)" if name != "KILL" else "pass"
    script = f"{no_core}; {default}; print('x', flush=True); os.kill(os.getpid(), signal.SIG{name}); signal.pause()"
    assert same(tmp_path, "-c", script)[0] == -getattr(signal, "SIG" + name)


@pytest.mark.parametrize(
    "script",
    [
        "raise KeyboardInterrupt",
        "import os, sys; sys.stdout.write('lost'); os._exit(17)",
        "import threading, sys\nt = threading.Thread(target=lambda: sys.exit(5)); t.start(); t.join(); print('main')",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t'); t.start(); t.join(); print('main')",
        "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(4)'])",
        "import os; print(sorted(int(one) for one in os.listdir('/proc/self/fd'))[:-1])",
        "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), [str(signal.getsignal(n)) for n in signal.valid_signals()])",
        "import os; print(os.getsid(0) == os.getsid(os.getppid()), oct(os.umask(0)))",
        "import resource; print([resource.getrlimit(n) for n in range(16)])",
        "import importlib; importlib.util.find_spec('os')",
        "import sys\nn = [0]\nsys.addaudithook(lambda e, a: n.__setitem__(0, n[0] + (e == 'import')))\nimport json, decimal\nprint(n)",
        "import sys\nc = [0]\ndef t(*_):\n c[0] += 1\n return t\nsys.settrace(t)\ndef g(): return 1\ng()\nsys.settrace(None)\nprint(c)",
        "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(e)",
        "import faulthandler, signal, os; faulthandler.register(signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR1)",
        "import os\nfor i in range(50):\n p = os.fork()\n if p == 0: os._exit(i)\n print(os.WEXITSTATUS(os.waitpid(p, 0)[1]))",
        "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)'], env={}, capture_output=True))",
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\ntry: os.getcwd()\nexcept OSError as e: print(e)",
        "try:\n import flatout\n print('there')\nexcept ImportError as e: print(e)",
        "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('y' * 300_000)",
        "import asyncio\nasync def f():\n await asyncio.sleep(0.01)\n p = await asyncio.create_subprocess_exec('true')\n return await p.wait()\n"
        "print(asyncio.run(f()), asyncio.run(asyncio.wait_for(asyncio.gather(*[asyncio.sleep(0, i) for i in range(100)]), 30)))",
        "import subprocess\nprint([subprocess.call(['sh', '-c', 'exit %d' % (i % 7)]) for i in range(100)])",
        "import os, time\nfor i in range(5): os.fork() or (time.sleep(0.05), os._exit(i))\n"
        "seen = []\nwhile True:\n try: seen.append(os.WEXITSTATUS(os.wait()[1]))\n except ChildProcessError as e: print(sorted(seen), e); break",
        "import os, signal, time\nr, w = os.pipe()\nif os.fork() == 0:\n os.setsid()\n os.write(w, b'%d' % (os.getsid(0) == os.getpid())); os._exit(0)\n"
        "os.wait(); print(os.read(r, 9))",
        "import threading, sys\nc = []\ndef t(*a):\n c.append(a[1])\n return t\nthreading.settrace(t)\n"
        "t = threading.Thread(target=lambda: sum(range(3))); t.start(); t.join(); print(len(c) > 0)",
        "import atexit, sys\natexit.register(lambda: print('first', flush=True)); atexit.register(lambda: 1 / 0); sys.exit(9)",
        "import weakref\nclass A: pass\na = A(); weakref.finalize(a, print, 'gone'); del a; b = A(); weakref.finalize(b, print, 'at exit')",
        "import gc, sys\ngc.collect(); print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, gc.get_freeze_count(), sys.getrecursionlimit())",
        "import warnings, logging, locale, time\nprint(warnings.filters, logging.root.handlers, locale.getlocale(), time.get_clock_info('perf_counter').resolution)",
        "import tempfile, os, pathlib\nprint(tempfile.gettempdir(), os.getcwd() == str(pathlib.Path.cwd()), sorted(set(os.listdir('.')) - {'home'}))",
    ],
)
def test_scripts(tmp_path, script):
    same(tmp_path, "-c", script)


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_multiprocessing(tmp_path, how):
    pool = f"with mp.get_context('{how}').Pool(2) as pool: print(pool.map(abs, range(-9, 0)))"
    write(tmp_path, {"p.py": f"import multiprocessing as mp\nif __name__ == '__main__':\n    {pool}\n"})
    same(tmp_path, "p.py")


@pytest.mark.parametrize("flags", "-O -OO -I -S -E -s -B -u -bb -Xdev -Werror -IS".split() + (["-P"] if sys.version_info >= (3, 11) else []))
def test_options_of_python(tmp_path, flags):
    same(tmp_path, flags, "-c", STATE)


def test_ways_to_start(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", "import sys; print(sys.argv, __file__, sys.path[0])")
    show = "import sys; print(sys.argv, __name__, sys.path[0])"
    write(tmp_path, {"pkg/__init__.py": "", "pkg/mod.py": show, "d/__main__.py": show, "a.pyz": packed.getvalue()})
    for command in (["-m", "pkg.mod", "x"], ["d"], ["a.pyz"], ["-c", show, "a b", "c'd", "", "--", "-q"]):
        same(tmp_path, *command)
    same(tmp_path, "-c", "import os, sys; print([os.fsencode(a) for a in sys.argv])", os.fsdecode(b"\xff\xfe"), "\x1b[31m")
    same(tmp_path, "-c", "import sys; print(sum(map(len, sys.argv)))", *["a" * 100_000] * 15)
    same(tmp_path, "-", input=b"import sys\nprint(sys.argv, sys.path[0], input())\nlast\n")
    same(tmp_path, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", input=bytes(range(256)) * 5000)


def test_other_programs(tmp_path):
    write(tmp_path, {"script.sh": f'echo "$0 $@" "$(umask)"; {sys.executable} -c "print(1)"; exit 3\n', "plain.py": "print(__file__)\n"})
    os.rename(tmp_path / "plain.py", os.path.join(os.fsencode(tmp_path), b"\xff\xfe.py"))
    for command in (["sh", "script.sh", "a b", "*"], ["true"], ["false"], ["sh", "-c", "kill -9 $$"], [sys.executable, os.fsdecode(b"\xff\xfe.py")]):
        alone, watched = both(tmp_path, command)
        assert watched == alone
    same(tmp_path, "-c", "import sys; print(len(sys.argv))", *["a"] * 20_000)


def test_flatout_within_flatout(tmp_path):
    script = "import subprocess, sys; raise SystemExit(subprocess.call([*%r, sys.executable, '-c', 'print(5); raise SystemExit(6)']))"
    assert same(tmp_path, "-c", script % flatout())[0] == 6


@pytest.mark.parametrize(
    "more",
    [
        {"HOME": None},
        {"HOME": "/nonexistent"},
        {"PATH": "/nonexistent"},
        {"PYTHONSTARTUP": "start.py"},
        {"PYTHONVERBOSE": "0"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONWARNINGS": "error"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONNOUSERSITE": "1"},
        {"PYTHONUTF8": "0", "LC_ALL": "C"},
        {"PYTHONSAFEPATH": "1"},
        {"LD_PRELOAD": ""},
        {"TMPDIR": "/nonexistent"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_environments(tmp_path, more):
    write(tmp_path, {"start.py": "print('started')"})
    script = "import os, sys; print(sys.path, sys.flags, sys.stdout.encoding, sorted((k, v) for k, v in os.environ.items() if k in %r))" % list(more)
    same(tmp_path, "-c", script, env=more)


@pytest.mark.parametrize("kind", ["works", "fails", "changes_the_path"])
def test_own_user_startup_file(tmp_path, kind):
    write(tmp_path, {"own/usercustomize.py": OWN[kind]})
    same(tmp_path, "-c", "import sys; print(sys.path, sys.modules.get('usercustomize'))", env={"PYTHONPATH": "own"})


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams(tmp_path, closed):
    script = "import os, sys; os.write(%d, repr([sys.stdin is None, sys.stdout is None, sys.stderr is None]).encode())"
    same(tmp_path, "-c", script % (1 if closed != 1 else 2), preexec_fn=lambda: os.close(closed))


def test_few_descriptors(tmp_path):
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    same(tmp_path, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))", preexec_fn=few)


OWN = {
    "works": "import builtins; builtins.mark = 1; print('site')",
    "fails": "1 / 0",
    "imports_what_is_not_there": "import nonexistent_thing",
    "changes_the_path": "import sys; sys.path.insert(0, '/zzz')",
    "ends": "def f():\n    raise SystemExit(3)\nf()",
}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=KEEPS_FRAMES if kind == "ends" else ()) for kind in OWN])
def test_own_startup_file(tmp_path, kind):
    write(tmp_path, {"own/sitecustomize.py": OWN[kind]})
    script = "import sys; print(sys.path, sys.modules.get('sitecustomize'), sorted(sys.modules))"
    for path in ("own", "own:.::other", ":own:"):
        same(tmp_path, "-c", script, env={"PYTHONPATH": path})


@pytest.mark.parametrize("path", ["../x:.", ":own:", "", None])
def test_python_path(tmp_path, path):
    same(tmp_path, "-c", STATE, env={"PYTHONPATH": path})


@pytest.mark.parametrize("name", ["flatout.py", "flatout/__init__.py"])
def test_own_module_named_flatout(tmp_path, name):
    script = "import torch, flatout; from flatout import VALUE; print(VALUE, flatout.__file__)"
    write(tmp_path, {name: "VALUE = 42\n", "p.py": script})
    assert b"42" in same(tmp_path, "p.py")[1]


def test_public_package(tmp_path):
    """As pip installs it, next to the probe."""
    script = "import torch, flatout\nfor _ in range(3): flatout.step(samples=2)\nwith flatout.phase('data'): pass\nprint(flatout.__name__)"
    assert same(tmp_path, "-c", script, env={"PYTHONPATH": str(ROOT / "python")})[1] == b"flatout\n"
    (record,) = (tmp_path / "home/runs").iterdir()
    assert '"steps":3' in (record / "steps.jsonl").read_text().replace(" ", "")


SPAWNED = """
import multiprocessing as mp, subprocess, sys, pickle, torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, transform):
        self.transform = transform
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return self.transform(torch.ones(4) * index)

if __name__ == "__main__":
    for batch in DataLoader(Rows(torch.Tensor.numpy), batch_size=4, num_workers=1, multiprocessing_context="spawn"):
        print(batch.sum())
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.map(torch.Tensor.item, [torch.ones(1), torch.zeros(1)]))
"""


def test_spawned_workers(tmp_path):
    write(tmp_path, {"p.py": SPAWNED})
    assert same(tmp_path, "p.py")[0] == 0


def test_pickles_are_read_elsewhere(tmp_path):
    script = "import pickle, sys, torch; sys.stdout.buffer.write(pickle.dumps([torch.Tensor.item, torch.Tensor.cpu]))"
    command = [*flatout(), sys.executable, "-c", script]
    made = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True).stdout
    read = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[0].__name__)"
    done = subprocess.run([sys.executable, "-c", read], input=made, env=environment(tmp_path), capture_output=True, check=True)
    assert done.stdout == b"item\n"


@pytest.mark.parametrize("python", sorted(VERSIONS.glob("*/bin/python")), ids=lambda path: path.parents[1].name)
def test_versions_of_python(tmp_path, python):
    # The import of `imp`, which old versions need for it, stays visible there.
    script = "import sys; print(sys.version, sys.path, sys.flags, sorted(set(sys.modules) - {'imp', 'importlib', 'types', 'warnings'}))"
    alone, watched = both(tmp_path, [str(python), "-c", script if not python.parents[1].name.startswith(("2.", "3.6")) else script[:40] + ")"])
    assert watched == alone
