import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


def train(steps=40, workers=0, model=None):
    torch.manual_seed(0)
    model = model or nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(8 * steps, 4), torch.randn(8 * steps, 1))
    for x, y in DataLoader(data, batch_size=8, num_workers=workers):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 6)


def descriptors():
    """Without the one that lists them."""
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]


# case: numbers_of_descriptors
import gc

before = descriptors()
print(train(), train(workers=1), gc.collect() >= 0, descriptors() == before)
first = os.open("file", os.O_CREAT | os.O_RDWR)
print(first - max(before), train(), os.dup(first) - first)

# case: descriptors_that_are_all_closed
# As a daemon does; then its children are forked.
train()
os.closerange(3, 256)
files = [open("file%d" % number, "w") for number in range(4)]
for number in range(3):
    child = os.fork()
    if not child:
        files[number].write("child")
        files[number].flush()
        train(4)
        os._exit(sum(os.fstat(file.fileno()).st_size for file in files))
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
print(train(workers=1), [file.write("end") for file in files], [file.close() for file in files])
print([open(file.name).read() for file in files])

# case: few_descriptors
import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors()) + 2,) * 2)
print(train())
try:
    held = [open("/dev/null") for _ in range(4)]
except OSError as error:
    print(error)

# case: no_room_for_files
import resource
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
code = train() == train()
os._exit(5 + code)

# case: no_more_processes
# Root has no such limit; the value is the program's own all the same.
import resource

resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
print(train(), resource.getrlimit(resource.RLIMIT_NPROC))

# case: children_that_train
child = os.fork()
if not child:
    print(train(), train(workers=2), flush=True)
    os._exit(7)
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), train())

# case: forks_of_a_thread
import threading

codes = []

def work():
    child = os.fork()
    if not child:
        os._exit(int(train(4) > 0) + 2)
    codes.append(os.WEXITSTATUS(os.waitpid(child, 0)[1]))

train()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
    train(4)
    thread.join()
print(codes)

# case: double_forks
train()
if not os.fork():
    if not os.fork():
        os.setsid()
        print(train(4), flush=True)
        open("done", "w").close()
        os._exit(0)
    os._exit(os.WEXITSTATUS(os.wait()[1]))
print(os.WEXITSTATUS(os.wait()[1]), os.path.exists("done"))

# case: end_without_cleaning_up
import atexit

atexit.register(print, "never")
train()
os._exit(23)

# case: work_at_the_end
import atexit
import weakref

class Thing:
    pass

thing = Thing()
weakref.finalize(thing, lambda: print("finalized", train(4)))
atexit.register(lambda: print("first registered", train(4)))
train()
atexit.register(lambda: print("last registered"))
atexit._run_exitfuncs()

# case: signal_handlers_that_train
import signal

seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(train(4)))
for _ in range(5):
    os.kill(os.getpid(), signal.SIGUSR1)
    train(4)
print(seen)

# case: wakeups_of_signals
import signal

reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001)
train()
signal.pause() if not os.get_blocking(reader) else None
print(os.read(reader, 1) == bytes([signal.SIGALRM]), signal.set_wakeup_fd(-1) == writer, signal.getitimer(signal.ITIMER_REAL))

# case: blocked_signals
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
train(workers=1)
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending())

# case: lines_that_are_traced
lines = set()

def tracer(frame, event, argument):
    if frame.f_code.co_filename != "program.py":
        return None
    lines.add((frame.f_code.co_name, frame.f_lineno, event))
    return tracer

sys.settrace(tracer)
train()
sys.settrace(None)
print(sorted(lines), sys.gettrace())

# case: calls_that_are_profiled
calls = {}

def profiler(frame, event, argument):
    if frame.f_code.co_filename == "program.py":
        name = frame.f_code.co_name, event
        calls[name] = calls.get(name, 0) + 1

class Rows(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        return torch.ones(4)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x):
        return self.inner(x)

model = Model()
sys.setprofile(profiler)
train(model=model)
print(sum(model(x).shape[0] for x in DataLoader(Rows(), batch_size=8)))
sys.setprofile(None)
print(sorted(calls.items()))

# case: threads_that_are_traced
import threading

seen = set()
threading.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_filename == "program.py"))
thread = threading.Thread(target=train)
thread.start()
thread.join()
threading.setprofile(None)
print(seen, sys.getprofile())

# case: training_in_a_pool_of_threads
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(1) as pool:
    print([round(result, 6) for result in pool.map(train, [10, 20, 30])])

# case: threads_that_fail
import threading

threading.excepthook = lambda given: print(given.exc_type.__name__, given.exc_value, len(list(iter_frames(given.exc_traceback))))

def iter_frames(trace):
    while trace is not None:
        yield trace
        trace = trace.tb_next

def work():
    train(4)
    torch.ones(3).item()

thread = threading.Thread(target=work)
thread.start()
thread.join()

# case: coroutines
import asyncio
import contextvars

variable = contextvars.ContextVar("variable", default=0)

async def train_slowly(number):
    variable.set(number)
    model = nn.Linear(4, 1)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=8):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        await asyncio.sleep(0)
    return variable.get(), round(model.weight.sum().item(), 4)

async def main():
    loop = asyncio.get_running_loop()
    print(await asyncio.gather(*map(train_slowly, range(4))), await loop.run_in_executor(None, train), variable.get())

asyncio.run(main())
print(contextvars.copy_context().run(train))

# case: generators
def training():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        for (x,) in DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=8):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            yield x.shape[0]
    finally:
        print("closed", sys.exc_info()[0])

one, other = training(), training()
print(sum(one), next(other), next(other))
other.close()
third = training()
next(third)
try:
    third.throw(KeyError("thrown"))
except KeyError as error:
    print(error)

# case: loaders_that_are_left
for _ in range(20):
    for (x,) in DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=8):
        break
iterators = [iter(DataLoader(TensorDataset(torch.ones(80, 4)), batch_size=8)) for _ in range(40)]
print(sum(next(iterator)[0].sum().item() for iterator in iterators), train())

# case: iterators_of_threads
import threading

iterator = iter(DataLoader(TensorDataset(torch.arange(800.0)), batch_size=8))
lock, taken = threading.Lock(), []

def take():
    while True:
        with lock:
            batch = next(iterator, None)
        if batch is None:
            return
        taken.append(batch[0].sum().item())

train()
threads = [threading.Thread(target=take) for _ in range(3)]
for thread in threads:
    thread.start()
take()
for thread in threads:
    thread.join()
print(len(taken), sum(taken))

# case: data_classes_with_torch_in_them
import copy
import dataclasses
import pickle

@dataclasses.dataclass(frozen=True)
class Settings:
    read: object = torch.Tensor.item
    kind: type = torch.optim.SGD
    loader: type = DataLoader

    def __reduce__(self):
        return dict, ((("read", self.read), ("kind", self.kind), ("loader", self.loader)),)

settings = Settings()
print(settings, hash(settings) == hash(Settings()), settings == copy.deepcopy(settings), dataclasses.astuple(settings) == dataclasses.astuple(Settings()))
print(pickle.dumps(settings, 2), pickle.loads(pickle.dumps(settings))["read"] is torch.Tensor.item)

# case: warnings_by_level
import warnings

warnings.simplefilter("always")

class Warns(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        if index % 8 == 0:
            for level in range(1, 7):
                warnings.warn("data", stacklevel=level)
        return torch.ones(4)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def train(self, mode=True):
        warnings.warn("mode", stacklevel=2)
        return super().train(mode)

    def forward(self, x):
        for level in range(1, 5):
            warnings.warn("forward", stacklevel=level)
        return self.inner(x)

class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        for level in range(1, 5):
            warnings.warn("step", stacklevel=level)
        return super().step(closure)

model = Model()
optimizer = Optimizer(model.parameters(), lr=0.1)
for x in DataLoader(Warns(), batch_size=8):
    model(x).sum().backward()
    optimizer.step()
    model.train().eval()

# case: warnings_once
import warnings

warnings.resetwarnings()
for action in ("default", "once", "module"):
    warnings.filterwarnings(action, message=action)
for _ in range(3):
    train(4)
    for action in ("default", "once", "module"):
        warnings.warn(action)
print(len(warnings.filters), sorted(key[0] for key in __warningregistry__ if isinstance(key, tuple)))

# case: settings_of_precision
for value in ("high", "medium", "highest"):
    torch.set_float32_matmul_precision(value)
    print(train(), torch.get_float32_matmul_precision())

# case: newer_settings_of_precision
import warnings

warnings.simplefilter("always")
try:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
except AttributeError as error:
    print(error)
print(train(), getattr(torch.backends.cuda.matmul, "fp32_precision", None))
try:
    print(torch.get_float32_matmul_precision())
except RuntimeError as error:
    print(error)

# case: code_that_is_run_in_pieces
import code
import runpy

shell = code.InteractiveConsole({"train": train, "torch": torch})
print(shell.runsource("print(train())"), shell.runsource("x = torch.ones(3)\nx.item()", "<cell>", "exec"))
with open("part.py", "w") as file:
    file.write("import torch\nvalue = torch.ones(1).item()\nif __name__ == '__main__': torch.ones(3).item()")
print(runpy.run_path("part.py")["value"])
try:
    runpy.run_path("part.py", run_name="__main__")
except RuntimeError:
    import traceback

    traceback.print_exc()
exec(compile("print(torch.ones(2).tolist(), train(4))", "<ipython-input-1>", "exec"))

# case: hooks_of_the_program
import gc

seen, asked = {"gc": 0, "audit": 0}, []
gc.callbacks.append(lambda phase, info: seen.__setitem__("gc", seen["gc"] + (phase == "start" and bool(asked))))
sys.addaudithook(lambda event, given: seen.__setitem__("audit", seen["audit"] + (event == "open" and str(given[0]).endswith("marked"))))
train()
gc.disable()
asked.append(True)
for _ in range(3):
    gc.collect()
open("marked", "w").close()
print(seen, sys.displayhook is sys.__displayhook__, sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__)

# case: an_unraisable_error
class Thing:
    def __del__(self):
        train(2)
        raise ValueError("unraisable")

thing = Thing()
del thing

# case: nested_errors
def inner():
    try:
        torch.ones(3).item()
    except RuntimeError as error:
        raise KeyError("outer") from error

try:
    inner()
finally:
    torch.ones(3, requires_grad=True).numpy()

# case: errors_that_are_kept
errors = []
for call in (lambda: torch.ones(3).item(), lambda: torch.optim.SGD([], lr=1), lambda: DataLoader([1], batch_size=0), lambda: bool(torch.ones(2))):
    try:
        call()
    except Exception as error:
        errors.append(error)
for error in errors:
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename.rpartition("/")[2], trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    print(type(error).__name__, frames, error.__context__, error.__cause__)

# case: streams_that_are_replaced
import contextlib
import io

stream = io.StringIO()
with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
    train()
    train(workers=1)
print(repr(stream.getvalue()))
sys.stdout = sys.stderr = None
train()
sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
print("shown")

# case: a_gone_working_directory
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
print(train(), train(workers=1))

# case: modules_that_are_forgotten
for name in [name for name in sys.modules if name.startswith(("json", "struct", "collections.abc"))]:
    del sys.modules[name]
print(train(), train(workers=1))

# case: environments_that_are_cleared
kept = dict(os.environ)
os.environ.clear()
print(train(), train(workers=1), sorted(os.environ))
os.environ.update(kept)

# case: clocks_that_are_replaced
import time

time.perf_counter_ns = time.time = time.monotonic = lambda: 0
print(train(), train(workers=1))

# case: builtins_that_are_replaced
import builtins

builtins.len, builtins.isinstance, builtins.print, kept = None, None, None, (len, isinstance, print)
# torch itself needs them.
builtins.len, builtins.isinstance, builtins.print = kept
builtins.open = None
print(train())

# case: errors_of_every_kind_of_call
import traceback

class Own(Exception):
    pass

class Fails(nn.Module):
    def forward(self, x):
        raise Own("forward")

class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise Own("backward")

class Steps(torch.optim.SGD):
    def step(self, closure=None):
        raise Own("step")

def hook(*_):
    raise Own("hook")

weight = nn.Parameter(torch.ones(4))
hooked = torch.optim.SGD([weight], lr=0.1)
hooked.register_step_post_hook(hook)
calls = [lambda: Fails()(1), lambda: Backward.apply(weight).sum().backward(), lambda: Steps([weight], lr=0.1).step(), hooked.step]
calls += [lambda: nn.Linear(1, 1).apply(hook), lambda: torch.save({"a": lambda: 1}, "x.pt"), lambda: torch.load("nothing.pt")]
calls += [lambda: torch.autocast("nowhere"), lambda: torch.compile(1)(1), lambda: torch.optim.Adam([weight], lr=0.1).step(hook)]
for call in calls:
    try:
        call()
    except Exception:
        traceback.print_exc()
