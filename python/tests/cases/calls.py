import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset


def train(loader=None, optimizer=torch.optim.SGD, model=None, epochs=2):
    torch.manual_seed(0)
    model = model or nn.Linear(4, 1)
    optimizer = optimizer(model.parameters(), lr=0.01)
    loader = loader or DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
    print(loss.item(), [parameter.detach().sum().item() for parameter in model.parameters()])
    return model, optimizer


torch.manual_seed(0)


class Rows(Dataset):
    calls = 0

    def __len__(self):
        Rows.calls += 1
        return 64

    def __getitem__(self, index):
        return torch.ones(4) * index, torch.ones(1)


class Stream(IterableDataset):
    def __iter__(self):
        return ((torch.ones(4) * index, torch.ones(1)) for index in range(32))


# case: length_of_a_data_set
train(DataLoader(Rows(), batch_size=8, shuffle=True))
train(DataLoader(Rows(), batch_size=8))
print(Rows.calls)

# case: length_of_a_stream_that_is_wrong
class Wrong(Stream):
    def __len__(self):
        return 4

loader = DataLoader(Wrong(), batch_size=4)
train(loader)
print(loader._IterableDataset_len_called)

# case: length_of_a_stream_with_workers
class Wrong(Stream):
    def __len__(self):
        return 4

train(DataLoader(Wrong(), batch_size=4, num_workers=2))

# case: length_that_ends_the_program
class Ends(Stream):
    def __len__(self):
        raise SystemExit(7)

train(DataLoader(Ends(), batch_size=8))

# case: length_of_a_loader_that_ends_the_program
class Loader(DataLoader):
    def __len__(self):
        raise SystemExit(9)

train(Loader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=8))

# case: attributes_of_a_data_set
class Asked(Rows):
    def __getattr__(self, name):
        print("asked", name)
        raise AttributeError(name)

train(DataLoader(Asked(), batch_size=8))

# case: attributes_and_length_of_a_sampler
class Own(Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        print("iter")
        return iter(range(16))

    def __len__(self):
        print("len")
        return 16

    def __getattr__(self, name):
        print("asked", name)
        raise AttributeError(name)

train(DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=8, sampler=Own()))

# case: attributes_of_a_batch
class Batch:
    def __init__(self, pair):
        self.pair = pair

    def __iter__(self):
        return iter(self.pair)

    def __getattr__(self, name):
        print("asked", name)
        raise AttributeError(name)

def collate(items):
    return Batch([torch.stack(column) for column in zip(*items)])

train(DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=8, collate_fn=collate))

# case: batches_of_own_collections
class Pair(list):
    def __getitem__(self, index):
        print("item", index)
        return super().__getitem__(index)

    def __len__(self):
        print("len")
        return 2

def collate(items):
    return Pair(torch.stack(column) for column in zip(*items))

train(DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=8, collate_fn=collate))

# case: parameters_and_modules
class Model(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def parameters(self, recurse=True):
        Model.calls += 1
        return super().parameters(recurse)

    def modules(self):
        print("modules")
        return super().modules()

train(model=Model())
print(Model.calls)

# case: comparing_loaders_and_optimizers
class Loader(DataLoader):
    def __eq__(self, other):
        print("eq")
        return True

    def __hash__(self):
        print("hash")
        return 1

class Optimizer(torch.optim.SGD):
    def __eq__(self, other):
        print("eq")
        return True

train(Loader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=8), Optimizer)

# case: tensors_with_functions_of_their_own
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print(getattr(function, "__name__", function))
        return super().__torch_function__(function, types, args, kwargs or {})

class Data(Rows):
    def __getitem__(self, index):
        return torch.ones(4), torch.ones(1)

def collate(items):
    return [torch.stack(column).as_subclass(Own) for column in zip(*items)]

for x, y in DataLoader(Data(), batch_size=32, collate_fn=collate):
    x.sum().item()

# case: function_modes
from torch.overrides import TorchFunctionMode, resolve_name

class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print(resolve_name(function), function is torch.Tensor.item)
        return function(*args, **(kwargs or {}))

with Mode():
    x = torch.ones(3)
    x.sum().item(), float(x.sum()), bool(x.sum()), x.tolist(), x.numpy(), x.cpu(), repr(x)
with Mode():
    train(epochs=1)

# case: dispatch_modes
from torch.utils._python_dispatch import TorchDispatchMode

class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        print(function)
        return function(*args, **(kwargs or {}))

with Mode():
    x = torch.ones(2, requires_grad=True)
    x.sum().item(), x.cpu(), float(x[0]), repr(x)
    train(epochs=1)

# case: loaders_within_loaders
class Nested(Rows):
    def __getitem__(self, index):
        inner = DataLoader(TensorDataset(torch.ones(2, 4)), batch_size=2)
        return next(iter(inner))[0].mean(0) * index, torch.ones(1)

train(DataLoader(Nested(), batch_size=8))

# case: own_loader_class
class Batches(Sampler):
    def __iter__(self):
        return ([index, index + 1] for index in range(4))

    def __len__(self):
        return 4

class Loader(DataLoader):
    def __init__(self, data, **more):
        super().__init__(data, batch_sampler=Batches(), **more)
        self.extra = 1

    def __iter__(self):
        yield from super().__iter__()

train(Loader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), num_workers=1))

# case: own_optimizer_class
class Own(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(params=parameters, defaults=dict(lr=lr))
        print(sorted(vars(self)))

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data -= group["lr"] * parameter.grad

train(optimizer=Own)

# case: hooks_of_an_optimizer
from torch.optim import optimizer as module

model = nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters())
optimizer.register_step_post_hook(lambda *given: print("post", len(given)))
optimizer.register_step_pre_hook(lambda *given: print("pre", len(given)))
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(sorted(optimizer.state_dict()["param_groups"][0]), optimizer.step.__qualname__, optimizer.step.hooked)
print(module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks)

# case: closures
model = nn.Linear(2, 1)
optimizer = torch.optim.LBFGS(model.parameters())

def closure():
    optimizer.zero_grad()
    loss = (model(torch.ones(3, 2)) - 1).square().sum()
    loss.backward()
    return loss

torch.manual_seed(1)
print(optimizer.step(closure).shape, optimizer.step(closure).shape)

# case: training_in_threads
import threading

for _ in range(3):
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()

# case: random_streams
import random

import numpy

random.seed(1)
numpy.random.seed(1)
train(epochs=3)
print(torch.rand(3), random.random(), numpy.random.rand())

# case: many_small_steps
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
torch.manual_seed(0)
nn.init.ones_(model.weight)
nn.init.zeros_(model.bias)
total = 0.0
for step in range(2000):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 1) * (step % 7)).sum()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)

# case: persistent_workers
generator = torch.Generator().manual_seed(1)
data = TensorDataset(torch.randn(16, 4, generator=generator), torch.ones(16, 1))
more = {"num_workers": 2, "persistent_workers": True, "shuffle": True, "generator": generator}
train(DataLoader(data, batch_size=4, **more), epochs=4)
print(torch.rand(1))

# case: autocast_and_evaluation
with torch.autocast("cpu", dtype=torch.bfloat16):
    model, _ = train()
model.eval()
with torch.no_grad():
    print(sum(model(x).sum().item() for x, _ in DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=4)))
print(model.train() is model, model.training)

# case: fork_while_training
import os

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(5):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    child = os.fork()
    if child == 0:
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        os._exit(number)
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))

# case: saved_tensors_are_unpacked_once
# Backward graphs are looked at from the eighth step on: what is saved in them must not be touched.
packed, unpacked = [], []

def pack(tensor):
    packed.append(tuple(tensor.shape))
    return tensor

def unpack(tensor):
    unpacked.append(tuple(tensor.shape))
    return tensor

with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    train(model=nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), epochs=4)
print(len(packed), len(unpacked), sorted(set(packed)), sorted(set(unpacked)))

# case: functions_of_the_program_in_the_graph
class Twice(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        Twice.calls += 1
        return gradient * 2

    def __getattribute__(self, name):
        if name in ("next_functions", "_input_metadata", "name"):
            print("asked for", name)
        return super().__getattribute__(name)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x):
        return Twice.apply(self.inner(x))

train(model=Model(), epochs=4)
print(Twice.calls)

# case: recomputed_layers_run_as_often
from torch.utils.checkpoint import checkpoint

class Counted(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def run(self, x):
        Counted.calls += 1
        return self.inner(x).tanh()

    def forward(self, x):
        return checkpoint(self.run, x, use_reentrant=False)

train(model=Counted(), epochs=4)
print(Counted.calls, checkpoint.__code__.co_name, checkpoint.__module__)

# case: backward_of_several_tensors
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    optimizer.zero_grad()
    first, second = model(torch.ones(3, 4)).unbind(1)
    torch.autograd.backward([first.sum(), second.sum()], retain_graph=True)
    torch.autograd.grad(first.sum() + second.sum(), list(model.parameters()))
    optimizer.step()
print(model.weight.sum().item())

# case: batches_with_a_mask_of_the_programs_own
class Mask(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Mask.seen.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})

def collate(rows):
    x = torch.stack([row[0] for row in rows])
    return {"attention_mask": torch.ones(8, 16, dtype=torch.long).as_subclass(Mask), "x": x, "y": torch.stack([row[1] for row in rows])}

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(4):
    for batch in DataLoader(Rows(), batch_size=8, collate_fn=collate):
        optimizer.zero_grad()
        (model(batch["x"]) - batch["y"]).square().mean().backward()
        optimizer.step()
print(Mask.seen, model.weight.sum().item())

# case: an_optimizer_for_every_step
model = nn.Linear(4, 1)
for step in range(60):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    model(torch.ones(3, 4)).square().mean().backward()
    optimizer.step()
print(model.weight.sum().item())
