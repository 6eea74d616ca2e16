"""Waits until the program itself imports torch, then starts the probe. Without torch it costs one function call an import."""

import sys

WATCHED = {
    "torch": "start",
    "torch._dynamo.eval_frame": "compiler",
    "torch.distributed.checkpoint.state_dict_saver": "checkpoints",
    "safetensors.torch": "safetensors",
}


class Hook:
    """A finder that finds nothing by itself but `flatout`; it puts a word behind the modules it watches."""

    def __init__(self, folder):
        self.folder = folder
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if name == "flatout" and path is None or name.startswith("flatout.") and self.mine(path):
            return self.find_flatout(name, path)
        if name not in WATCHED or self.busy:
            return None
        self.busy = True
        try:
            from importlib.util import find_spec

            spec = find_spec(name)
            if spec is not None and spec.loader is not None:
                follow(spec.loader, name)
            return spec
        except Exception:
            return None
        finally:
            self.busy = False

    def mine(self, path):
        return path is not None and any(str(entry).startswith(self.folder) for entry in path)

    def find_flatout(self, name, path):
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path or [self.folder])
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "get_code"):
            loader = spec.loader
            get_code = loader.get_code
            loader.get_code = lambda module: nameless(get_code(module))
        return spec


def nameless(code):
    """Tools that follow the program line by line (coverage) look for the source of what they saw, and ours is gone by then: a name
    like this one they pass over."""
    if code is None:
        return None
    inner = [nameless(part) if hasattr(part, "co_filename") else part for part in code.co_consts]
    return code.replace(co_filename="<flatout>", co_consts=tuple(inner))


def follow(loader, name):
    """Runs our function once the module has run. Only this one loader object is changed, and it is changed back."""
    execute = loader.exec_module

    def exec_module(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        execute(module)
        began(name, module)

    loader.exec_module = exec_module


def began(name, module):
    try:
        from flatout._probe import begin

        getattr(begin, WATCHED[name])(module)
    except Exception:
        pass


def install(folder):
    if any(type(finder).__name__ == "Hook" and hasattr(finder, "find_flatout") for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, Hook(folder))
    if "torch" in sys.modules:
        began("torch", sys.modules["torch"])
