"""Mixed precision: which autocast was really entered, and whether one was asked for and never came."""

from .. import clock, guard, places
from ..raw import fields
from ..weave import weave
from ..ring import W_STEPS

_entered = {}
_told = None
_asked = False
NAMES = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}


def install(torch):
    weave(torch.amp.autocast_mode.autocast.__enter__, leave=entered)
    scalers = [getattr(torch.amp, "GradScaler", None), torch.cuda.amp.GradScaler]
    weave(next(scaler for scaler in scalers if scaler is not None).__init__, leave=scaler_made)
    clock.flushers.append(flush)


def entered(autocast, result):
    if not guard.off:
        try:
            own = fields(autocast)
            key = (own.get("device"), own.get("fast_dtype"), own.get("_enabled"))
            if key not in _entered:
                first(key)
        except BaseException as error:
            if guard.foreign(error, "autocast"):
                raise
    return result


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
    elif by_the_user(2):
        ask(place)


def by_the_user(depth):
    """Whether the program's own code called, not a framework that always builds an autocast or a scaler."""
    frame = places.calling_frame(depth + 1)
    return frame is not None and places.kind_of(frame.f_code) == places.USER


def ask(place):
    global _asked
    if not _asked:
        _asked = True
        clock.fact("amp.asked", True, None, place)


def scaler_made(scaler, nothing):
    if not guard.off:
        tell_scaler(scaler)
    return nothing


@guard.quietly
def tell_scaler(scaler):
    if by_the_user(2):
        ask(places.user_place(2))
    clock.fact("amp.scaler", fields(scaler).get("_enabled") is True, None, places.user_place(2))


def in_use():
    """Whether the program computes in mixed precision by itself."""
    return _told not in (None, "off")


def flush(last=False):
    global _told
    if _told is None and clock.words[W_STEPS] >= 3:
        _told = "off"
        clock.fact("amp.dtype", "off")
