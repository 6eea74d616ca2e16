"""Starts the probe when the program itself imports torch. Until then it costs one function call per import, afterwards nothing."""

import sys

PACKAGES = ("_flatout_probe", "_flatout_apply")


class Hook:
    """A finder for flatout's own packages; for torch it asks the other finders and adds a call after the import."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PACKAGES:
            return self.find_probe(name)
        return self.find_torch(path, target) if name == "torch" else None

    def find_probe(self, name):
        # Not `importlib.machinery`: a program that forgets to import it must fail as it does alone.
        finder = sys.modules["_frozen_importlib_external"].PathFinder
        spec = finder.find_spec(name, ["/".join([self.folder, *name.split(".")[:-1]])])
        if spec is not None and hasattr(spec.loader, "get_code"):
            loader = spec.loader
            get_code = loader.get_code
            loader.get_code = lambda module: nameless(get_code(module))
        return spec

    def find_torch(self, path, target):
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            spec = find_spec("torch", path, target) if find_spec is not None and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    follow(spec.loader, self)
                return spec
        return None


def nameless(code):
    """Tools that follow a program line by line (coverage) read the source of every file they saw, and this folder is gone by then. They
    skip a name like this one."""
    if code is None:
        return None
    inner = [nameless(part) if hasattr(part, "co_filename") else part for part in code.co_consts]
    return code.replace(co_filename="<flatout>", co_consts=tuple(inner))


def follow(loader, hook):
    """Starts the probe after the module ran. Only this one loader object is changed, and it is changed back."""
    execute = loader.exec_module

    def exec_module(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        try:
            execute(module)
        except BaseException as error:
            # The traceback shows the frames that it would show without this function.
            show(error, error.__traceback__.tb_next)
            raise
        began(module, hook)

    loader.exec_module = exec_module


def show(error, trace):
    error.__traceback__ = trace
    if sys.version_info < (3, 11):
        try:
            from _flatout_probe import guard

            guard.show(error, trace)
        except Exception:
            pass


def began(torch, hook):
    own = getattr(torch, "__dict__", {})
    if "_C" not in own or "Tensor" not in own:
        # Another module of that name. It must not be asked for what it does not have.
        return
    try:
        from _flatout_probe import begin, extension

        begin.start(torch)
        if not extension.wanted():
            sys.meta_path.remove(hook)
    except Exception:
        pass


def trial_files():
    """In a trial of `flatout tune`, before the program binds the names of any function that opens files."""
    import os

    text = os.environ.get("FLATOUT_TRIAL")
    if not text:
        return
    try:
        import json

        from _flatout_apply.trials import overlay

        plan = json.loads(text)
        overlay.install(plan["saved"], os.path.join(plan["folder"], "saved-anything"))
    except Exception:
        pass


def install(folder):
    if any(type(finder).__name__ == "Hook" and hasattr(finder, "find_probe") for finder in sys.meta_path):
        return
    hook = Hook(folder)
    sys.meta_path.insert(0, hook)
    trial_files()
    if "torch" in sys.modules:
        began(sys.modules["torch"], hook)
