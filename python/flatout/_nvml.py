"""The GPU's utilization outside `flatout run`, from the driver's own library (NVML) through ctypes. Nothing here raises."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The library and the device, once they were looked for; None in place of both where there is no GPU.
_found: list[Any] = []


def _device(library: Any, ctypes: Any) -> Any:
    """The first GPU that the program may use: NVML counts all of them, CUDA_VISIBLE_DEVICES picks."""
    handle = ctypes.c_void_p()
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first.startswith("GPU-"):
        failed = library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(handle))
    elif first.isdigit():
        failed = library.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(handle))
    else:
        # None is visible (`-1` or empty), or a part of one, which has no utilization of its own.
        return None
    return None if failed else handle


def _open() -> None:
    import ctypes

    library: Any = None
    device: Any = None
    try:
        library = ctypes.CDLL(os.environ.get("FLATOUT_NVML_LIB") or "libnvidia-ml.so.1")
        device = None if library.nvmlInit_v2() else _device(library, ctypes)
    except Exception:
        device = None
    _found[:] = [library, device] if device is not None else [None, None]


def utilization() -> float | None:
    """0 to 1; None if there is no GPU, or the driver does not report it."""
    try:
        if not _found:
            _open()
        library, device = _found
        if library is None:
            return None
        import ctypes

        # Percent of the time a kernel ran, and percent of the time memory was used.
        rates = (ctypes.c_uint * 2)()
        if library.nvmlDeviceGetUtilizationRates(device, rates):
            return None
        return int(rates[0]) / 100
    except Exception:
        return None
