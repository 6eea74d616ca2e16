import gc
import inspect
import pickle
import sys
import traceback
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

before = {name: (id(getattr(dist, name)), pickle.dumps(getattr(dist, name))) for name in ("all_reduce", "broadcast", "barrier", "all_gather")}
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

# case: collectives_of_one_rank
x = torch.arange(4.0)
dist.all_reduce(x)
dist.broadcast(x, 0)
found = [torch.zeros(4)]
dist.all_gather(found, x)
work = dist.all_reduce(x, async_op=True)
print(work.wait(), x, found)
objects = [None]
dist.all_gather_object(objects, {"a": 1})
dist.broadcast_object_list(objects, 0)
print(objects, dist.barrier())

# case: functions_stay_what_they_are
for name, (number, pickled) in before.items():
    function = getattr(dist, name)
    print(name, id(function) == number, pickle.dumps(function) == pickled, function.__name__, function.__qualname__, function.__module__)
    print(inspect.signature(function), len(inspect.getsource(function)), sorted(vars(function)), function.__wrapped__.__closure__)
print(sorted(vars(DistributedDataParallel))[:12], inspect.signature(DistributedDataParallel._post_forward))

# case: errors_in_collectives
for call in (lambda: dist.all_reduce("no tensor"), lambda: dist.broadcast(torch.ones(2), 7), lambda: dist.all_gather([], torch.ones(2))):
    try:
        call()
    except Exception:
        traceback.print_exc()

# case: an_error_that_ends_the_program
def reduce():
    dist.all_reduce([torch.ones(2)])

reduce()

# case: data_parallel_training
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    with model.no_sync() if step % 2 else torch.enable_grad():
        model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print([round(parameter.sum().item(), 6) for parameter in model.parameters()])
print(sorted(vars(model)), [parameter._backward_hooks for parameter in model.parameters()])
print([module._forward_hooks for module in model.modules()])

# case: a_model_that_is_gone
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
gone = weakref.ref(model)
model(torch.randn(8, 4)).mean().backward()
with model.no_sync():
    model(torch.randn(8, 4))
del model
gc.collect()
print(gone())

# case: an_error_in_backward
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        raise ValueError("in backward")

model = DistributedDataParallel(torch.nn.Linear(4, 1))
for _ in range(2):
    try:
        Fails.apply(model(torch.randn(8, 4))).mean().backward()
    except ValueError:
        traceback.print_exc()

# case: a_profile_of_python_calls
calls = []
sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name) if event == "call" and "torch/distributed" in frame.f_code.co_filename else None)
dist.all_reduce(torch.ones(2))
sys.setprofile(None)
print(calls)

# case: gone_and_made_again
dist.destroy_process_group()
try:
    dist.all_reduce(torch.ones(2))
except Exception:
    traceback.print_exc()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(2))
