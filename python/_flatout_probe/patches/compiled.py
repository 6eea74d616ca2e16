"""torch.compile: asked for, really applied, errors, graph breaks, recompiles. Dynamo counts them itself; they are only read."""

import sys

from .. import clock, guard, places
from ..raw import name_of
from ..weave import weave

_breaks = {}
_seen = set()
_applied = False
_called = False


def install(torch):
    weave(torch.compile, ("mode", "backend"), enter=called)
    clock.flushers.append(flush)


@guard.quietly
def called(mode, backend):
    global _called
    _called = True
    place = places.user_place(2)
    clock.fact("compile.called", True, None, place)
    clock.fact("compile.applied", False, None, place)
    clock.fact("compile.mode", mode if type(mode) is str else "default", None, place)
    clock.fact("compile.backend", backend if type(backend) is str else name_of(type(backend)), None, place)


def hide(torch):
    """The compiler's frame evaluator skips the probe's own functions, so that it neither compiles them nor counts them. Calls inside
    compiled code are another matter: there each patch asks `is_compiling` and steps aside."""
    evaluator = torch._C._dynamo.eval_frame
    skip_code = getattr(evaluator, "skip_code", None)
    if skip_code is None:
        # As torch._dynamo.eval_frame.skip_code does it; the compiler itself is not loaded yet.
        action = evaluator._FrameAction
        strategy = evaluator._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip_code(code):
            evaluator.set_code_exec_strategy(code, strategy)

    skip_code(guard.compiling.__code__)
    for name, module in list(sys.modules.items()):
        if name == "flatout" or name.startswith("_flatout_probe"):
            functions = list(vars(module).values())
            functions += [method for cls in functions if isinstance(cls, type) and cls.__module__ == name for method in vars(cls).values()]
            for function in functions:
                while hasattr(function, "__code__"):
                    skip(function.__code__, skip_code)
                    # A decorated function hides the one that it calls.
                    function = getattr(function, "__wrapped__", None)


def skip(code, skip_code):
    skip_code(code)
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            skip(inner, skip_code)


def flush(last=False):
    global _applied
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None or not _called:
        return
    counters = utils.counters
    if not _applied and counters["stats"].get("unique_graphs", 0) > 0:
        _applied = True
        clock.fact("compile.applied", True)
    for reason, total in list(counters["graph_break"].items()):
        new = total - _breaks.get(reason, 0)
        if new > 0:
            _breaks[reason] = total
            clock.event("compile", what="graph-break", count=new, message=str(reason)[:600])
    metrics = getattr(utils, "get_compilation_metrics", None)
    for one in metrics() if metrics is not None else []:
        look(one)


def look(one):
    """One frame's compilation. A frame compiled again with a filled cache is a recompile."""
    if id(one) in _seen or getattr(one, "is_runtime", False):
        return
    _seen.add(id(one))
    file, line = getattr(one, "co_filename", None), getattr(one, "co_firstlineno", None)
    place = {"file": file, "line": line} if file and line else None
    name = getattr(one, "co_name", None)
    if getattr(one, "fail_type", None):
        message = "%s: %s" % (one.fail_type, one.fail_reason)
        clock.event("compile", what="error", count=1, message=message[:600], place=place)
    elif (getattr(one, "cache_size", None) or 0) > 0:
        clock.event("compile", what="recompile", count=1, message=name, place=place, duration_ms=duration_of(one))
    elif name:
        clock.event("compile", what="compiled", count=1, message=name, place=place, duration_ms=duration_of(one))


def duration_of(one):
    seconds = getattr(one, "entire_frame_compile_time_s", None)
    return seconds * 1e3 if type(seconds) in (int, float) else None
