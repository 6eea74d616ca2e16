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
        if name == "flatout" and path is None:
            return self.find_flatout()
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

    def find_flatout(self):
        from importlib.machinery import PathFinder

        return PathFinder.find_spec("flatout", [self.folder])


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
