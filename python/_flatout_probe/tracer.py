"""Opens the CUPTI tracer in this process and records windows of GPU activity.

The library is opened once CUDA is in use, never before: a program without a GPU pays nothing. Calls release the GIL. Every
failure becomes a reason, a short string; nothing is raised.
"""

import os
import sys

LIBRARY = "libflatout_tracer.so"
VERSION = 1
# Bits of `kinds`; 0 records kernels, copies, memsets and synchronizations.
KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, OVERHEAD, RUNTIME, DRIVER, GRAPH_TRACE = (1 << bit for bit in range(8))
SHARED = 1 << 16
RUNNING, FINALIZED = 1, 2

_library = None
_profiling = False
_profiled = False


def _cuda():
    """torch, if this process uses CUDA through it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


def open(folder: str) -> str:
    """Loads the library from `folder`. Returns a reason, empty if it is open."""
    global _library
    if _library is not None:
        return ""
    try:
        if _cuda() is None:
            return "CUDA is not initialized"
        import ctypes

        library = ctypes.CDLL(os.path.join(folder, LIBRARY))
        library.flatout_tracer_version.restype = ctypes.c_uint32
        if library.flatout_tracer_version() != VERSION:
            return "the tracer has another version"
        library.flatout_tracer_start.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32]
        library.flatout_tracer_start.restype = ctypes.c_int32
        library.flatout_tracer_stop.argtypes = [ctypes.c_int32]
        library.flatout_tracer_stop.restype = ctypes.c_int64
        library.flatout_tracer_status.restype = ctypes.c_int32
        library.flatout_tracer_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        library.flatout_tracer_error.restype = ctypes.c_size_t
        library.flatout_tracer_after_fork.restype = None
        os.register_at_fork(after_in_child=library.flatout_tracer_after_fork)
        _library = library
        return ""
    except Exception as error:
        return "the tracer cannot be loaded: %s" % error


def available() -> str:
    """Whether a window may be opened now. Returns a reason, empty if it may."""
    try:
        torch = _cuda()
        if torch is None:
            return "CUDA is not initialized"
        if _library is None:
            return "the tracer is not open"
        if _profiling or torch._C._autograd._profiler_enabled():
            return "torch.profiler is active"
        if torch.cuda.is_current_stream_capturing():
            return "a CUDA graph is being captured"
        return ""
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def _has_graphs(torch) -> bool:
    """Whether a CUDA graph exists. Its kernels fail after CUPTI was detached (CUDA 13.0, measured), so then CUPTI stays."""
    import gc

    graph = getattr(torch.cuda, "CUDAGraph", None)
    # An instance refers to its class; asking for referrers looks at every object once, in C.
    return graph is not None and any(type(thing) is graph for thing in gc.get_referrers(graph))


def start(path: str, max_records: int = 0, kinds: int = 0) -> str:
    """Opens a window that records into a new file. Returns a reason, empty if the window is open."""
    reason = available()
    if reason:
        return reason
    try:
        if _profiled:
            # torch.profiler stays subscribed to CUPTI after its first use; it is idle now.
            kinds |= SHARED
        code = _library.flatout_tracer_start(os.fsencode(path), max_records, kinds)
        return "" if code == 0 else _reason(code)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def stop(final: bool = False) -> "tuple[int, str]":
    """Closes the window. Returns the number of records and a reason, empty if all went well.

    After the last window, `final` detaches CUPTI: enabled once, it makes launches slower. That waits for the GPU once.
    """
    try:
        if _library is None:
            return 0, "the tracer is not open"
        refused = ""
        if final:
            torch = _cuda()
            if torch is not None and torch.cuda.is_current_stream_capturing():
                # Waiting would break the capture.
                final, refused = False, "not finalized: a CUDA graph is being captured"
            elif torch is not None and _has_graphs(torch):
                final, refused = False, "not finalized: a CUDA graph was captured in the window"
            else:
                _synchronize()
        count = _library.flatout_tracer_stop(1 if final else 0)
        if count < 0:
            return 0, _reason(-count)
        if final and _library.flatout_tracer_status() != FINALIZED:
            return count, _reason(6)
        return count, refused
    except Exception as error:
        return 0, "%s: %s" % (type(error).__name__, error)


def watch() -> None:
    """Yields to the program's own torch.profiler: its first preparation closes an open window."""
    profiler = sys.modules.get("torch.autograd.profiler")
    prepare = getattr(profiler, "_prepare_profiler", None)
    disable = getattr(profiler, "_disable_profiler", None)
    if prepare is None or disable is None or hasattr(prepare, "flatout"):
        return

    def prepared(*arguments, **named):
        global _profiling, _profiled
        if _library is not None and _library.flatout_tracer_status() == RUNNING:
            stop()
        _profiling = _profiled = True
        return prepare(*arguments, **named)

    def disabled(*arguments, **named):
        global _profiling
        try:
            return disable(*arguments, **named)
        finally:
            _profiling = False

    prepared.flatout = True
    profiler._prepare_profiler = prepared
    profiler._disable_profiler = disabled


def _synchronize() -> None:
    """Waits for every GPU that this process uses, and for no other: that would create a context there."""
    torch = _cuda()
    if torch is None:
        return
    for device in range(torch.cuda.device_count()):
        if torch._C._cuda_hasPrimaryContext(device):
            torch.cuda.synchronize(device)


def _reason(code: int) -> str:
    import ctypes

    text = ctypes.create_string_buffer(300)
    _library.flatout_tracer_error(text, len(text))
    return text.value.decode(errors="replace") or "tracer error %d" % code
