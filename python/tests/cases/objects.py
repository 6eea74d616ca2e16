import copy
import inspect
import pickle
import subprocess
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

METHODS = ("item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__repr__", "to", "backward")


def table():
    return DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2)


# case: methods_of_a_tensor
for name in METHODS:
    method, base = getattr(torch.Tensor, name), getattr(torch._C.TensorBase, name, None)
    print(name, type(method).__name__, method.__qualname__, getattr(method, "__module__", None), inspect.ismethoddescriptor(method))
    print(method is base, name in vars(torch.Tensor), hasattr(method, "__wrapped__"), hash(method) == hash(base))

# case: methods_of_an_instance
x = torch.ones(1)
for name in METHODS:
    print(type(getattr(x, name)).__name__, getattr(x, name).__name__)

# case: methods_that_are_kept
import operator

x, y = torch.ones(1), torch.ones(1, requires_grad=True)
for tensor in (x, y):
    item, tolist, cpu, to, truth = tensor.item, tensor.tolist, tensor.cpu, tensor.to, tensor.__bool__
    for method in (item, tolist, truth, operator.attrgetter("item")(tensor), operator.attrgetter("cpu")(tensor)):
        print(type(method).__name__, method.__name__, method.__self__ is tensor, method == getattr(tensor, method.__name__))
        print(method(), method(), method())
    print(type(cpu).__name__, cpu(), cpu(), type(to).__name__, to(torch.float64), to(dtype=torch.float64, copy=True))
    print([read() for read in [tensor.item] * 3], list(map(lambda tensor: tensor.item(), [tensor] * 3)))
    print(operator.methodcaller("item")(tensor), operator.methodcaller("to", torch.float64)(tensor), getattr(tensor, "item")())
    print(operator.attrgetter("__bool__")(tensor)(), bool(tensor), float(tensor), int(tensor), not tensor, tensor.__bool__())
    print({"read": tensor.item}["read"](), (lambda read: (read(), read()))(tensor.item), sorted([tensor, tensor], key=torch.Tensor.item))

# case: pickled_methods
for name in METHODS:
    method = getattr(torch.Tensor, name)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(method, protocol)) is method
    print(name, pickle.dumps(method, 2), copy.deepcopy(method) is method)

# case: pickled_classes_and_functions
for thing in (DataLoader, torch.optim.SGD, torch.optim.Adam, DataLoader.__init__, torch.save, nn.Module.train, torch.compile):
    assert pickle.loads(pickle.dumps(thing)) is thing
    print(pickle.dumps(thing, 2))

# case: cloudpickled
try:
    import cloudpickle
except ImportError:
    raise SystemExit(0)
print([cloudpickle.dumps(getattr(torch.Tensor, name)) for name in METHODS], len(cloudpickle.dumps(lambda: torch.Tensor.item)))

# case: saved_objects
class Settings:
    pass

settings = Settings()
settings.reduce = torch.Tensor.item
torch.save(settings, "settings.pt")
print(torch.load("settings.pt", weights_only=False).reduce(torch.ones(1)))

# case: signatures_and_sources
from torch.utils.data.dataloader import _BaseDataLoaderIter

functions = [DataLoader.__init__, DataLoader.__iter__, _BaseDataLoaderIter.__next__, torch.optim.Optimizer.__init__, torch.save]
functions += [torch.optim.Optimizer.zero_grad, nn.Module.train, nn.Module.eval, torch.autocast.__enter__, torch.compile, torch.no_grad.__enter__]
for function in functions:
    code = function.__code__
    print(function.__qualname__, inspect.signature(function), hash(inspect.getsource(function)) != 0, len(inspect.getsource(function)))
    print(inspect.getsourcefile(function), code.co_argcount, code.co_name, code.co_firstlineno, code.co_filename, code.co_flags)
    print(function.__defaults__, function.__kwdefaults__, function.__module__, function.__dict__.keys(), inspect.getfullargspec(function).args)
print(inspect.signature(DataLoader), inspect.signature(torch.optim.AdamW))

# case: attributes_of_objects
loader = table()
iterator = iter(loader)
print(sorted(vars(loader)), sorted(vars(iterator)), sorted(vars(iterator._dataset_fetcher)))
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
model(next(iterator)[0]).sum().backward()
optimizer.step()
print(sorted(vars(model)), sorted(vars(optimizer)), sorted(optimizer.state_dict()))

# case: copied_loaders_and_optimizers
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 4)).sum().backward()
optimizer.step()
for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
    print(type(other) is type(optimizer), len(other.state), sorted(vars(other)))
for other in (copy.deepcopy(table()), pickle.loads(pickle.dumps(table()))):
    print(sorted(vars(other)), len(list(other)))
try:
    pickle.dumps(iter(table()))
except Exception as error:
    print(type(error), error)

# case: changed_loaders
loader = table()
for name in ("batch_size", "sampler"):
    try:
        setattr(loader, name, 3)
    except ValueError as error:
        print(error)
loader.num_workers = 1
loader.extra = 1
print(len(list(loader)), sorted(vars(loader)))

# case: references
import gc
import weakref

loader = table()
iterator = iter(loader)
batch = next(iterator)
print(sys.getrefcount(batch), sys.getrefcount(batch[0]), sys.getrefcount(loader))
seen = [weakref.ref(thing) for thing in (loader, iterator, loader.dataset)]
del loader, iterator, batch
print([reference() is None for reference in seen])
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
loss = model(torch.ones(1, 1)).sum()
loss.backward()
optimizer.step()
print(loss.item() is not None, sys.getrefcount(loss))
seen = [weakref.ref(thing) for thing in (model, optimizer, loss)]
del model, optimizer, loss
gc.collect()
print([reference() is None for reference in seen])

# case: handlers_of_functions
HANDLED = {}

class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in HANDLED:
            return HANDLED[function]
        return super().__torch_function__(function, types, args, kwargs or {})

for name in ("item", "tolist", "cpu", "numpy"):
    HANDLED[getattr(torch.Tensor, name)] = name
HANDLED[torch.Tensor.__float__] = 3.25
x = torch.tensor(2.0).as_subclass(Own)
print(x.item(), x.tolist(), x.cpu(), x.numpy(), float(x))

# case: own_tensor_classes
class Own(torch.Tensor):
    def item(self):
        return super().item() + 1

    def __bool__(self):
        return False

x = torch.tensor(2.0).as_subclass(Own)
print(x.item(), bool(x), torch._C.TensorBase.item(x), nn.Parameter(torch.ones(1)).item())

# case: programs_that_patch_torch
calls, item, init, step = [], torch.Tensor.item, DataLoader.__init__, torch.optim.SGD.step
torch.Tensor.item = lambda self: calls.append("item") or -item(self)
DataLoader.__init__ = lambda self, *given, **named: calls.append(sorted(named)) or init(self, *given, **named)
torch.optim.SGD.step = lambda self, closure=None: calls.append("step") or step(self, closure)
weight = nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for (x,) in table():
    (x * weight).sum().backward()
    optimizer.step()
    print(weight.sum().item())
del torch.Tensor.item
print(calls, torch.ones(1).item(), "item" in vars(torch.Tensor))

# case: mocks
from unittest import mock

with mock.patch.object(torch.Tensor, "item", return_value=5):
    print(torch.ones(1).item())
print(torch.ones(1).item(), "item" in vars(torch.Tensor))
with mock.patch.object(torch.Tensor, "item", autospec=True) as mocked:
    torch.ones(1).item()
    print(mocked.call_count)

# case: fake_and_meta_tensors
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode():
    x = torch.ones(3, requires_grad=True)
    for read in (lambda: x.sum().item(), lambda: bool(x.sum()), x.tolist, x.numpy, x.cpu, lambda: repr(x)):
        try:
            print(read())
        except Exception as error:
            print(type(error).__name__, str(error)[:90])
meta = torch.ones(2, device="meta", requires_grad=True)
for read in (lambda: meta.sum().item(), meta.tolist, lambda: repr(meta)):
    try:
        print(read())
    except Exception as error:
        print(type(error).__name__, str(error)[:90])

# case: vmap_and_grad
from torch.func import grad, vmap

for function in (lambda x: x.item(), lambda x: x if x > 0 else -x):
    try:
        vmap(function)(torch.ones(3, requires_grad=True))
    except Exception as error:
        print(type(error).__name__, str(error)[:200])
print(grad(lambda x: x.square().sum())(torch.ones(2)), grad(lambda x: x.sum() * x.sum().detach().item())(torch.ones(2)))

# case: script_and_fx
@torch.jit.script
def scripted(x: torch.Tensor):
    if bool(x.sum() > 0):
        return x.sum().item()
    return float(x.sum())

print(scripted(torch.ones(2)), scripted.code)

class Model(nn.Module):
    def forward(self, x):
        return x.cpu() * 2 + x.sum().item()

print(torch.fx.symbolic_trace(Model()).code)

# case: exported
class Plain(nn.Module):
    def forward(self, x):
        return x.cpu() * 2 + 1

class Reads(nn.Module):
    def forward(self, x):
        return x * x.sum().item()

for model in (Plain(), Reads()):
    try:
        print(torch.export.export(model, (torch.ones(2),)).graph)
    except Exception as error:
        print(type(error).__name__)

# case: compiled
import logging

import torch._dynamo

logging.disable(logging.CRITICAL)

@torch.compile(backend="eager")
def function(x):
    if x.sum() > 0:
        return x + x.sum().item()
    return x

model = torch.compile(nn.Linear(4, 1), backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in table():
    optimizer.zero_grad()
    model.train()
    model(x).sum().backward()
    optimizer.step()
print(function(torch.ones(2)), dict(torch._dynamo.utils.counters["graph_break"]), dict(torch._dynamo.utils.counters["stats"]))

# case: compiled_modes_and_steps
import logging

import torch._dynamo

logging.disable(logging.CRITICAL)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.compile(backend="eager", fullgraph=True)
def change(model, x):
    model.eval()
    return model(x)

print(change(model, torch.ones(1, 4)).shape, model.training)
model(torch.ones(1, 4)).sum().backward()
torch.compile(optimizer.step, backend="eager")()
print(dict(torch._dynamo.utils.counters["stats"]))

# case: profiled
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for (x,) in table():
        loss = (x * weight).sum()
        loss.backward()
        optimizer.step()
        loss.item()
print(sorted((event.key, event.count) for event in profile.key_averages()))

# case: state_of_python
import gc
import threading
import warnings

print(sys.path, sys.meta_path, sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile(), sys.getrecursionlimit())
print(threading.active_count(), "sitecustomize" in sys.modules, gc.get_threshold(), gc.isenabled(), len(warnings.filters))
