"""Facts about torch, the model, the batches and the device. Read once, when training really begins."""

import gc
import os
import sys

from .. import clock, device, guard, precision, raw
from ..ring import W_BATCHES, W_STEPS

_torch = None
_told = {}
_cuda = False


def install(torch):
    global _torch
    _torch = torch
    clock.flushers.append(flush)


def tell(key, value, scope=None):
    """A fact, when it is new or changed."""
    if value is not None and _told.get((key, scope)) != value:
        _told[(key, scope)] = value
        clock.fact(key, value, scope)


def flush(last=False):
    global _cuda
    torch = _torch
    _cuda = torch.cuda.is_initialized()
    if _cuda and sample_device not in clock.after_some_steps:
        clock.after_some_steps.append(sample_device)
        clock.after_some_batches.append(batch_came)
    tell("python.version", sys.version.split()[0])
    tell("torch.version", str(torch.__version__))
    tell("torch.cuda", torch.version.cuda)
    tell("threads.torch", torch.get_num_threads())
    tell("process", os.getpid())
    tell("cuda.visible", os.environ.get("CUDA_VISIBLE_DEVICES"))
    if clock.words[W_STEPS] == 0:
        return
    tell("transformers.version", version_of("transformers"))
    tell("device", "cuda" if _cuda else "cpu")
    if _cuda:
        cudnn = torch.backends.cudnn
        tell("tf32.matmul", precision.tf32_matmul(torch))
        tell("tf32.cudnn", precision.tf32_convolution(torch))
        tell("cudnn.benchmark", bool(cudnn.benchmark))
        tell("cudnn.deterministic", bool(cudnn.deterministic))
        tell("device.count", torch.cuda.device_count())
    tell("matmul.precision", precision.matmul(torch))
    accumulation()


def version_of(name):
    """Of a module that the program has imported. Those that import their parts when they are asked for keep it among their objects."""
    own = raw.fields(sys.modules.get(name))
    objects = own.get("_objects")
    found = own.get("__version__") or (objects.get("__version__") if type(objects) is dict else None)
    return found if type(found) is str else None


def accumulation():
    """Batches a step, once that is clear."""
    steps, batches = clock.words[W_STEPS], clock.words[W_BATCHES]
    if steps >= 8 and batches:
        tell("step.accumulation", max(1, round(batches / steps)))


def describe_batch(batch, scope):
    with raw.without_functions():
        found = list(raw.tensors(batch))
        if not found:
            return
        first = found[0]
        tell("input.dtype", str(first.dtype).replace("torch.", ""), scope)
        tell("input.device", first.device.type, scope)
        tell("input.shape", list(first.shape), scope)
        tell("input.bytes", size_of(found), scope)
        if first.device.type == "cpu" and _torch.cuda.is_initialized():
            tell("input.pinned", bool(first.is_pinned()), scope)


def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@guard.quietly
def describe_training(parameters):
    """The model of an optimizer's parameters: found among the living objects, so that no module has to be patched."""
    if parameters:
        with raw.without_functions():
            describe_model(parameters)


def describe_model(parameters):
    first = parameters[0]
    devices = {str(parameter.device) for parameter in parameters}
    tell("device.used", len(devices))
    tell("model.device", first.device.type)
    distributed = _torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        tell("parallel.world_size", distributed.get_world_size())
    module, modules = find_model(first)
    if module is None:
        return
    every = raw.parameters(module)
    tell("model.class", raw.name_of(type(module)))
    tell("model.parameters", sum(parameter.numel() for parameter in every))
    tell("model.tensors", len(every))
    tell("model.bytes", size_of(every))
    tell("model.dtype", str(first.dtype).replace("torch.", ""))
    nn = _torch.nn
    inside = raw.modules(module)
    tell("model.has_rnn", any(raw.is_a(part, nn.RNNBase) for part in inside))
    tell("model.has_conv", any(raw.is_a(part, nn.modules.conv._ConvNd) for part in inside))
    tell("model.memory_format", memory_format(every))
    for part in modules + inside:
        name = raw.name_of(type(part))
        if name == "DataParallel" and len(raw.items(raw.fields(part).get("device_ids")) or ()) < 2:
            # On one device, or none, it hands the batch through.
            continue
        if name in ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"):
            tell("parallel.class", name)


def find_model(parameter):
    """The outermost module that holds the parameter, and the wrappers seen on the way."""
    module_type = _torch.nn.Module
    modules = [thing for thing in gc.get_objects() if raw.is_a(thing, module_type)]
    children = {id(child) for module in modules for child in raw.items(raw.fields(module).get("_modules")) or ()}
    outer = [(raw.parameters(module), module) for module in modules if id(module) not in children]
    holders = [(len(every), module) for every, module in outer if any(one is parameter for one in every)]
    wrappers = [module for module in modules if raw.name_of(type(module)) in ("DataParallel", "DistributedDataParallel")]
    return (max(holders, key=lambda holder: holder[0])[1] if holders else None), wrappers


def memory_format(parameters):
    for parameter in parameters:
        if parameter.dim() == 4 and parameter.shape[1] > 1 and parameter.shape[2] > 1:
            last = parameter.is_contiguous(memory_format=_torch.channels_last)
            return "channels_last" if last and not parameter.is_contiguous() else "contiguous"
    return None


def sample_device(now):
    if _cuda:
        device.step_ended(_torch, now)


def batch_came(now):
    if _cuda:
        device.batch_came(_torch, now)


def after_fork():
    global _cuda
    _cuda = False
    _told.clear()
