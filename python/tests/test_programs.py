"""Programs of any kind behave under `flatout run` as they do alone: exit codes, signals, streams, options of Python, startup files."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, both, environment, flatout, need

torch = need("torch")

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


@pytest.mark.parametrize("number", [5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 32, 64])
def test_few_descriptors(tmp_path, number):
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
    same(tmp_path, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))", preexec_fn=few)


LIMITS = {
    "files": (resource.RLIMIT_FSIZE, 0),
    "small_files": (resource.RLIMIT_FSIZE, 4096),
    "cores": (resource.RLIMIT_CORE, 0),
    "locked": (resource.RLIMIT_MEMLOCK, 0),
    "stack": (resource.RLIMIT_STACK, 1 << 20),
    "memory": (resource.RLIMIT_AS, 400 << 20),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("command", [[sys.executable, "-c", "print(sum(range(1000)))"], ["sh", "-c", "sleep 1.5; echo ran; exit 3"]], ids=["python", "sh"])
def test_limits(tmp_path, name, command):
    """flatout has the same limits: that it meets one is no affair of the program's."""
    which, most = LIMITS[name]
    alone, watched = both(tmp_path, command, preexec_fn=lambda: resource.setrlimit(which, (most, most)))
    assert watched == alone


DISPOSITIONS = """
import os, signal
for line in open("/proc/self/status"):
    if line.startswith(("SigIgn", "SigBlk", "SigPnd", "ShdPnd")):
        print(line.strip())
print(signal.getsignal(signal.SIGCHLD), os.system("exit 3"))
"""


@pytest.mark.parametrize("name", ["PIPE", "CHLD", "HUP", "INT", "TERM", "USR1", "TSTP", "WINCH", "XFSZ", "RTMIN"])
@pytest.mark.parametrize("command", [["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"], [sys.executable, "-c", DISPOSITIONS]], ids=["grep", "python"])
def test_ignored_signals(tmp_path, name, command):
    ignored = lambda: signal.signal(getattr(signal, "SIG" + name), signal.SIG_IGN)
    alone, watched = both(tmp_path, command, preexec_fn=ignored, restore_signals=False)
    assert watched == alone


def test_blocked_signals(tmp_path):
    blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    alone, watched = both(tmp_path, [sys.executable, "-c", DISPOSITIONS], preexec_fn=blocked)
    assert watched == alone


def test_gone_working_directory(tmp_path):
    gone = lambda: (os.mkdir("gone"), os.chdir("gone"), os.rmdir("../gone"))
    script = "import os\ntry: os.getcwd()\nexcept OSError as e: print(e)\nraise SystemExit(4)"
    assert same(tmp_path, "-c", script, preexec_fn=gone)[0] == 4


def test_an_alarm_that_was_set_before(tmp_path):
    """Timers stay with a process that becomes another program, and are not those of its children."""
    script = "import time\ntime.sleep(60)"
    assert same(tmp_path, "-c", script, preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 3))[0] == -signal.SIGALRM


def test_all_descriptors_are_closed(tmp_path):
    """As some batch systems start programs."""
    script = "import os; os.makedirs('seen', exist_ok=True); os.rmdir('seen'); os._exit(len(os.listdir('/proc/self/fd')))"
    same(tmp_path, "-c", script, preexec_fn=lambda: os.closerange(0, 3))


# What a program may find in the place of torch, or make of it.
TORCHES = {
    "a_module": {"torch.py": "VALUE = 42\ndef ones(*_): return 1\n"},
    "an_empty_module": {"torch.py": ""},
    "a_package_without_files": {"torch/other.py": "VALUE = 1\n"},
    "one_that_fails": {"torch.py": "1 / 0\n"},
    "one_that_is_missing_a_part": {"torch/__init__.py": "import torch_that_is_not_there\n"},
    "one_that_exits": {"torch/__init__.py": "def leave():\n    raise SystemExit(9)\nleave()\n"},
    "one_that_answers_everything": {"torch/__init__.py": "def __getattr__(name):\n    print('asked', name)\n    raise AttributeError(name)\n"},
    "one_that_replaces_itself": {"torch.py": "import sys, types\nsys.modules[__name__] = types.SimpleNamespace(VALUE=3)\n"},
    "one_with_syntax_errors": {"torch.py": "def (:\n"},
}
USES_TORCH = """
import sys, traceback
for attempt in range(3):
    try:
        import torch
        print(type(torch), getattr(torch, "VALUE", None), sorted(name for name in vars(torch) if not name.startswith("__")))
    except Exception:
        traceback.print_exc()
    print("torch" in sys.modules)
    sys.modules.pop("torch", None)
"""


@pytest.mark.parametrize("name", TORCHES)
def test_other_modules_named_torch(tmp_path, name):
    write(tmp_path, {**TORCHES[name], "p.py": USES_TORCH})
    same(tmp_path, "p.py")


def test_torch_that_was_there_before(tmp_path):
    script = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import torch; print(sorted(vars(torch)), torch)"
    same(tmp_path, "-c", script)


LATE = """
import sys, threading
assert "torch" not in sys.modules

def work():
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.linspace(-1, 2, 64).reshape(64, 1)), batch_size=8):
        optimizer.zero_grad()
        (x * weight - 1).square().mean().backward()
        optimizer.step()
    results.append(round(weight.item(), 6))

results = []
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results)
"""


def test_torch_imported_late_in_threads(tmp_path):
    write(tmp_path, {"p.py": LATE})
    assert same(tmp_path, "p.py")[0] == 0


INTERPRETERS = """
try:
    from concurrent import interpreters
    run = lambda text: interpreters.create().exec(text)
except ImportError:
    try:
        import _interpreters as module
    except ImportError:
        import _xxsubinterpreters as module
    run = lambda text: module.run_string(module.create(), text)
text = "import sys\\nprint(sys.path, sorted(sys.modules), 'sitecustomize' in sys.modules, flush=True)"
for _ in range(2):
    run(text)
"""


@pytest.mark.skipif(sys.version_info[:2] in ((3, 9), (3, 10), (3, 11)), reason="its interpreters cannot import everything")
def test_interpreters_within(tmp_path):
    write(tmp_path, {"p.py": INTERPRETERS})
    same(tmp_path, "p.py")


def test_times_of_imports(tmp_path):
    """The times differ from run to run, and the probe's own file is the one that Python looks for at every start."""
    def names(text):
        return [name for name in (line.rpartition(b"|")[2].strip() for line in text.splitlines()) if name not in (b"sitecustomize", b"_flatout_probe.hook")]

    alone, watched = both(tmp_path, [sys.executable, "-X", "importtime", "-c", "import json, decimal; print(json.dumps(1))"])
    assert (watched[0], watched[1], names(watched[2])) == (alone[0], alone[1], names(alone[2]))


SHARED = """
import atexit, multiprocessing as mp, os, sys
from multiprocessing import shared_memory

def work(name, queue):
    memory = shared_memory.SharedMemory(name)
    memory.buf[0] += 1
    memory.close()
    queue.put(sorted(name for name in os.environ if "FLATOUT" in name and name != "FLATOUT_HOME") == sorted(told))

told = [name for name in os.environ if "FLATOUT" in name and name != "FLATOUT_HOME"]
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    memory = shared_memory.SharedMemory(create=True, size=16)
    queue = context.Queue()
    processes = [context.Process(target=work, args=(memory.name, queue)) for _ in range(2)]
    for process in processes:
        process.start()
        process.join()
    print([queue.get() for _ in processes], memory.buf[0], [process.exitcode for process in processes])
    memory.close()
    memory.unlink()
    with context.Manager() as manager:
        print(manager.dict(a=1).copy(), manager.Lock().acquire())
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_memory_that_processes_share(tmp_path, how):
    write(tmp_path, {"p.py": SHARED})
    assert same(tmp_path, "p.py", how)[0] == 0


CLASSES = """
import multiprocessing as mp, pickle, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, index):
        return torch.ones(4) * index

class Loader(DataLoader):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.extra = torch.Tensor.item

def train(number):
    torch.manual_seed(number)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x in Loader(Rows(), batch_size=4):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 4), optimizer, Loader(Rows(), batch_size=4)

if __name__ == "__main__":
    with mp.get_context(sys.argv[1]).Pool(2) as pool:
        for loss, optimizer, loader in pool.map(train, range(3)):
            print(loss, type(optimizer).__name__, len(optimizer.state), loader.extra is torch.Tensor.item, len(list(loader)))
    import torch.multiprocessing as torch_mp
    queue = torch_mp.get_context(sys.argv[1]).SimpleQueue()
    queue.put(torch.ones(3))
    print(queue.get())
"""


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_training_in_pools(tmp_path, how):
    write(tmp_path, {"p.py": CLASSES})
    assert same(tmp_path, "p.py", how)[0] == 0


OWN = {
    "works": "import builtins; builtins.mark = 1; print('site')",
    "fails": "1 / 0",
    "imports_what_is_not_there": "import nonexistent_thing",
    "changes_the_path": "import sys; sys.path.insert(0, '/zzz')",
    "ends": "def f():\n    raise SystemExit(3)\nf()",
}


@pytest.mark.parametrize("kind", OWN)
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


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="older than these settings")
def test_newer_settings_of_precision_are_recorded(tmp_path):
    """Reading the former ones is an error then."""
    script = (
        "import torch\ntorch.backends.cuda.matmul.fp32_precision = 'tf32'\nweight = torch.nn.Parameter(torch.ones(1))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\nfor _ in range(20):\n weight.sum().backward(); optimizer.step()"
    )
    same(tmp_path, "-c", script)
    (record,) = (tmp_path / "home/runs").iterdir()
    facts = {fact["key"]: fact["value"] for fact in map(json.loads, (record / "facts.jsonl").read_text().splitlines())}
    assert facts["matmul.precision"] == "high" and '"probe"' not in (record / "events.jsonl").read_text()


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
