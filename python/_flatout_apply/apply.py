"""How each setting is put in force."""

import gc
import inspect
import os

from _flatout_probe import extension, sharding

from . import accumulate, malloc, model, settings
from .settings import told, values

_torch = None
_autocast = None


def install(torch):
    global _torch
    _torch = torch
    if "threads.torch" in values:
        torch.set_num_threads(int(values["threads.torch"]))
        told("threads.torch")
    if values.get("gc.freeze"):
        # A loader's workers have all that the program has, and never give it back.
        os.register_at_fork(after_in_child=gc.freeze)
        told("gc.freeze")
    if values.get("malloc.keep"):
        told("malloc.keep", None if malloc.keep() else "no-mallopt")
    # Programs set these at their start; ours come after, with the first step.
    extension.on_optimizer.append(switches)
    if "amp" in values:
        install_amp(torch)
    accumulate.install(torch)
    model.install(torch)
    fetching(torch)


def fetching(torch):
    """Settings that replace how batches are made, and the step as a graph."""
    from . import batched, graph, resident, threads

    if values.get("loader.resident"):
        batched.install(teller("loader.resident"), resident.maker(torch))
    elif values.get("loader.batched"):
        batched.install(teller("loader.batched"))
    if values.get("loader.threads"):
        threads.install(torch, int(values["loader.threads"]), teller("loader.threads"))
    if values.get("step.graph"):
        graph.install(torch, model.compile_found, teller("step.graph"))


def teller(key):
    return lambda reason: told(key, reason)


def switches():
    extension.on_optimizer.remove(switches)
    torch = _torch
    if "tf32" in values:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = bool(values["tf32"])
        told("tf32", None if torch.cuda.is_initialized() else "no-cuda")
    if "cudnn.benchmark" in values:
        torch.backends.cudnn.benchmark = bool(values["cudnn.benchmark"])
        told("cudnn.benchmark", None if torch.cuda.is_initialized() else "no-cuda")
    if "matmul.precision" in values:
        torch.set_float32_matmul_precision(str(values["matmul.precision"]))
        told("matmul.precision")
    if values.get("gc.freeze"):
        gc.collect()
        gc.freeze()
    if values.get("zero_grad.set_to_none") is not None:
        told("zero_grad.set_to_none")


def install_amp(torch):
    """Autocast from the batch's coming to the backward pass: the forward pass and the loss, as a `with` around them would be."""
    wish = values["amp"]
    dtype = {"bf16": torch.bfloat16}.get(wish)
    if wish is False:
        told("amp", "off-needs-edit")
        return
    if dtype is None:
        # Half precision without loss scaling would ruin the training, and a scaler cannot be put in from outside.
        told("amp", "needs-scaler" if wish == "fp16" else "unknown-value")
        return

    def begin():
        global _autocast
        if _autocast is None and not torch.is_autocast_enabled():
            device = "cuda" if torch.cuda.is_initialized() else "cpu"
            _autocast = torch.autocast(device, dtype=dtype)
            _autocast.__enter__()
            told("amp")

    def end():
        global _autocast
        if _autocast is not None:
            _autocast.__exit__(None, None, None)
            _autocast = None

    backward = torch.Tensor.backward

    def patched(self, *args, **kwargs):
        end()
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = patched
    extension.on_batch.append(begin)
    extension.on_optimizer.append(end)


def loader_arguments(original, loader, args, kwargs):
    """The constructor's arguments with ours in their place. Evaluation loaders keep their batch size."""
    bound = inspect.signature(original).bind(loader, *args, **kwargs)
    given = bound.arguments
    workers, repeats = values.get("loader.num_workers", given.get("num_workers", 0)), False
    if "loader.num_workers" in values and workers > 1:
        repeats = every_worker_reads_all(given)
        workers = given.get("num_workers", 0) if repeats else workers
    for name in settings.LOADER:
        key = "loader." + name
        if key not in values:
            continue
        value = values[key]
        if name == "num_workers" and repeats:
            told(key, "every-worker-reads-all")
            continue
        if name in ("persistent_workers", "prefetch_factor") and not workers:
            told(key, "needs-workers")
        elif name == "batch_size" and (given.get("batch_sampler") is not None or given.get("batch_size", 1) is None):
            told(key, "own-batch-sampler")
        elif name == "batch_size" and not (given.get("shuffle") or given.get("sampler") is not None):
            told(key, "evaluation-loader")
        else:
            given[name] = value
            told(key)
    training = bool(given.get("shuffle") or given.get("sampler") is not None or given.get("batch_sampler") is not None)
    if values.get("padding.trim") and training:
        from . import padding

        given["collate_fn"] = padding.Trimmed(given.get("collate_fn") or _torch.utils.data.default_collate, teller("padding.trim"))
    if values.get("loader.resident"):
        # Batches are made where the data is: in this process, on the GPU.
        workers = given["num_workers"] = 0
        given["pin_memory"] = False
    if not workers:
        given.pop("prefetch_factor", None)
        given.pop("persistent_workers", None)
    return bound.args[1:], bound.kwargs


def every_worker_reads_all(given):
    """Whether samples would come once per worker."""
    dataset = given.get("dataset")
    iterable = isinstance(dataset, _torch.utils.data.IterableDataset)
    return iterable and not sharding.is_shared(dataset, given.get("worker_init_fn"))


def optimizer_defaults(optimizer, defaults):
    for name in ("fused", "foreach"):
        key = "optimizer." + name
        if key not in values:
            continue
        if name not in defaults:
            told(key, "not-supported")
            continue
        defaults[name] = bool(values[key])
        if name == "fused" and values[key] and defaults.get("foreach"):
            defaults["foreach"] = False
        told(key)


def scale_learning_rate(optimizer):
    scale = values.get("optimizer.lr_scale")
    if type(scale) in (int, float) and scale > 0:
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * scale
        optimizer.defaults["lr"] = optimizer.defaults.get("lr", 0) * scale
        told("optimizer.lr_scale")
    elif scale is not None:
        told("optimizer.lr_scale", "unknown-value")
