# Python imports this file at startup because `flatout run` puts its folder first in PYTHONPATH. It installs the probe's import hook,
# leaves sys.path as it would be without flatout, then gives way to the program's own sitecustomize.
# Plain enough for any Python: versions that the probe does not support must start as usual.
import sys


def _begin():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here or entry == ""]
    getattr(sys, "path_importer_cache", {}).pop(here, None)
    if sys.version_info < (3, 9) or not os.environ.get("FLATOUT_RING"):
        return
    try:
        source = os.path.join(here, "_flatout_probe", "hook.py")
        scope = {"__name__": "_flatout_probe.hook", "__file__": source}
        with open(source, "rb") as file:
            exec(compile(file.read(), "<flatout>", "exec"), scope)
        scope["install"](here)
    except Exception:
        pass


def _own():
    """Loads the sitecustomize that Python would have found without this one. Raises the ImportError that Python expects where there is none."""
    # The import system itself, without the modules of `importlib` that the program may not have imported.
    spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_begin()
if sys.version_info < (3, 7):
    import imp

    imp.load_module("sitecustomize", *imp.find_module("sitecustomize"))
else:
    try:
        _own()
    except BaseException as _error:
        # The traceback begins in the program's own file, as without flatout.
        _trace = _error.__traceback__
        while _trace.tb_next is not None and _trace.tb_frame.f_code.co_filename.startswith((__file__, "<frozen importlib")):
            _trace = _trace.tb_next
        _error.__traceback__ = _trace
        if (3, 9) <= sys.version_info < (3, 11) and not isinstance(_error, Exception):
            # It ends the program.
            try:
                from _flatout_probe import guard as _guard

                _guard.show(_error, _trace)
            except Exception:
                pass
        raise
