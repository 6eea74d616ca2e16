"""Mixed precision: which autocast was really entered, and whether one was asked for and never came."""

from .. import clock, guard, places
from ..ring import W_STEPS

_entered = {}
_told = None
_asked = False
NAMES = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}


def install(torch):
    cls = torch.amp.autocast_mode.autocast
    original = cls.__enter__
    compiling = guard.compiling

    @guard.like(original)
    def __enter__(self):
        result = original(self)
        if not compiling() and not guard.off:
            try:
                key = (self.device, self.fast_dtype, self._enabled)
                if key not in _entered:
                    first(key)
            except Exception as error:
                guard.failed(error, "autocast")
        return result

    cls.__enter__ = __enter__
    scalers = [getattr(torch.amp, "GradScaler", None), torch.cuda.amp.GradScaler]
    for scaler in {scaler for scaler in scalers if scaler is not None}:
        _patch_scaler(scaler)
    clock.flushers.append(flush)


@guard.quietly
def first(key):
    global _told
    device, dtype, enabled = key
    place = places.user_place(2)
    _entered[key] = place
    if enabled:
        _told = NAMES.get(str(dtype), str(dtype))
        clock.fact("amp.dtype", _told, None, place)
        clock.fact("amp.device", device, None, place)
    else:
        ask(place)


def ask(place):
    global _asked
    if not _asked:
        _asked = True
        clock.fact("amp.asked", True, None, place)


def _patch_scaler(cls):
    original = cls.__init__

    @guard.like(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if not guard.off:
            scaler_made(self)

    cls.__init__ = __init__


@guard.quietly
def scaler_made(scaler):
    ask(places.user_place(2))
    clock.fact("amp.scaler", bool(scaler.is_enabled()), None, places.user_place(2))


def flush(last=False):
    global _told
    if _told is None and clock.words[W_STEPS] >= 3:
        _told = "off"
        clock.fact("amp.dtype", "off")
