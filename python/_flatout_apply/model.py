"""Settings that act on the model itself: its memory format, and compiling it. The model is found behind the optimizer once the
first batch has come: by then the program has built both."""

from _flatout_probe import extension
from _flatout_probe.patches import environment, optimizer

from .settings import told, values

_torch = None
_done = False


def install(torch):
    global _torch
    _torch = torch
    if "channels_last" in values or "compile" in values:
        extension.on_batch.append(first_batch)


def first_batch():
    global _done
    if _done:
        return
    _done = True
    module = find()
    if module is not None:
        change(module)


def find():
    """The model behind the optimizers."""
    for one in optimizer.known():
        parameters = [parameter for group in one.param_groups for parameter in group["params"]]
        module = environment.find_model(parameters[0])[0] if parameters else None
        if module is not None:
            return module
    return None


def compile_found(mode):
    """Compiles the model; gives the reason where it cannot be."""
    module = find()
    if module is None:
        return "no-model"
    if any(isinstance(part, _torch.nn.RNNBase) for part in module.modules()):
        return "recurrent"
    import torch._dynamo

    torch._dynamo.config.suppress_errors = True
    compile(module, mode)
    return None


def change(module):
    nn = _torch.nn
    inside = list(module.modules())
    if "channels_last" in values:
        # Convolutions follow their weights' format, so the input may stay as it comes.
        convolutions = any(isinstance(part, nn.Conv2d) for part in inside)
        if convolutions and values["channels_last"]:
            module.to(memory_format=_torch.channels_last)
        told("channels_last", None if convolutions else "no-convolution")
    mode = values.get("compile")
    if mode is None:
        return
    if mode is False:
        told("compile", "off-needs-edit")
    elif any(isinstance(part, nn.RNNBase) for part in inside):
        told("compile", "recurrent")
    else:
        import torch._dynamo

        # What cannot be compiled runs as it did before; the compiler's own counters tell of it.
        torch._dynamo.config.suppress_errors = True
        graphs = mode == "reduce-overhead" and not any(parameter.is_cuda for parameter in module.parameters())
        compile(module, None if mode is True or mode == "default" or graphs else str(mode))
        told("compile", "graphs-need-gpu" if graphs else None)


def compile(module, mode):
    """As `Module.compile`, which passes over modules with a `forward` of torch's own (a `Sequential`) without a word: the compiler looks
    at no frame of theirs unless one of another kind stands around it."""
    from torch._dynamo import external_utils

    around = getattr(external_utils, "wrap_inline", None)
    if around is None or not getattr(type(module).forward, "__module__", "").startswith("torch."):
        module.compile(mode=mode)
    else:
        module._compiled_call_impl = _torch.compile(around(module._call_impl), mode=mode)
