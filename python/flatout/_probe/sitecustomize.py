# Reached through PYTHONPATH in every Python process of a program that `flatout run` started. It installs the probe's import
# hook, leaves sys.path as it would be without flatout, then gives way to the program's own sitecustomize.
# Plain enough for any Python: older ones must pass over it in silence.
import sys


def _begin():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here or entry == ""]
    try:
        if sys.version_info >= (3, 9) and os.environ.get("FLATOUT_RING"):
            source = os.path.join(here, "flatout", "_probe", "hook.py")
            scope = {"__name__": "flatout._probe.hook", "__file__": source}
            with open(source, "rb") as file:
                exec(compile(file.read(), "<flatout>", "exec"), scope)
            scope["install"](here)
    except Exception:
        pass


def _give_way():
    """Runs the sitecustomize that Python would have found without ours; its errors are its own."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        # What Python's site module passes over in silence, and leaves no module behind.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_begin()
if sys.version_info >= (3, 4):
    _give_way()
