# What Dynamo counts while it compiles things the probe has patched. Printed once without and once with flatout: must be equal.
import torch
from torch._dynamo.utils import counters, get_compilation_metrics

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
compiled = torch.compile(model, backend="eager")


@torch.compile(backend="eager")
def reads(x):
    y = x.to(torch.float64) * 2
    if y.sum() > 0:
        y = y + y.mean().item()
    return y.cpu().sum()


@torch.compile(backend="eager")
def mixed(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    print("inside")
    return y.float().tolist()


@torch.compile(backend="eager")
def modes(x):
    model.eval()
    y = model(x)
    model.train()
    return bool(y.sum() > -1e9), float(y.mean())


def step():
    optimizer.step()
    optimizer.zero_grad()


compiled_step = torch.compile(step, backend="eager")
for size in (4, 5, 6, 4):
    x = torch.randn(size, 8)
    compiled(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    compiled(x).sum().backward()
    compiled_step()
    reads(x)
    mixed(x)
    modes(x)
print(sorted(counters["stats"].items()))
# The functions that were compiled, and how often again.
print(sorted((str(one.co_name), one.cache_size or 0) for one in get_compilation_metrics()))
print(sum(counters["graph_break"].values()), len(counters["graph_break"]))
