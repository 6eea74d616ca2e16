"""The probe in a program that runs already (`flatout attach --probe`): put in at a safe point of the main thread, taken out at the end.

Loaders, iterators and optimizers that exist are looked up once; where they were made is not known. DataLoader workers that run already
stay as they are, those of the next epoch are observed. What the probe put into torch's functions is taken out again, so a program that was
attached to runs as before.
"""

import os
import sys

# While the probe is put in: hooks that only reach what is made later need another way.
active = False
_resting = []


def put(rings):
    """Gives why the probe cannot be here; None when it is."""
    from . import clock, guard

    if guard.told:
        return "the probe turned itself off earlier: " + guard.told[0].splitlines()[0]
    if clock.ring.is_open and not guard.off:
        return "the program runs under flatout already"
    os.environ["FLATOUT_RING"] = rings
    clock.folder = rings
    again = guard.off
    guard.off = False
    clock.after_fork()
    torch = sys.modules.get("torch")
    if again:
        begin_again(torch)
    elif torch is not None:
        start(torch)
    if guard.told:
        return guard.told[0].splitlines()[0]
    clock.begin()
    return None


def start(torch):
    global active
    from . import begin, guard, places

    if getattr(torch, "compiler", None) is None or "torch.optim" not in sys.modules:
        # Still being imported: another thread is in the middle of it.
        raise RuntimeError("torch is not imported completely yet")
    active = places.unknown = True
    try:
        begin.start(torch)
        adopt(torch)
    finally:
        active = places.unknown = False
        if guard.off:
            out()


def adopt(torch):
    """Loaders and iterators that the program has made already."""
    import gc
    import weakref

    from . import clock
    from .patches import loader as patch
    from torch.utils.data import dataloader

    found = gc.get_objects()
    kinds = {}

    def is_a(thing, cls):
        key = type(thing), cls
        if key not in kinds:
            kinds[key] = cls in type.__getattribute__(key[0], "__mro__")
        return kinds[key]

    loaders = [thing for thing in found if is_a(thing, dataloader.DataLoader)]
    iterators = [thing for thing in found if is_a(thing, dataloader._BaseDataLoaderIter)]
    del found
    for one in loaders:
        patch.describe(one)
    for iterator in iterators:
        data = patch.fields(iterator).get("_dataset")
        owners = [one for one in loaders if patch.fields(one).get("dataset") is data]
        info = patch.info_of(owners[0]) if len(owners) == 1 else None
        if info is not None:
            # As `_before_iter` makes it. How many batches it gave is not known, so its epoch is not told.
            state = [info, clock.perf_counter_ns(), 0, 0, True]
            patch._iterators[id(iterator)] = weakref.ref(iterator), state


def begin_again(torch):
    """The record is another one: everything is told once more."""
    global active
    from . import begin, places
    from .patches import environment, loader

    for woven in _resting:
        woven.wake()
    _resting.clear()
    if torch is None:
        return
    begin.forked()
    environment._told.clear()
    loader._loaders.clear()
    loader._iterators.clear()
    active = places.unknown = True
    try:
        adopt(torch)
    finally:
        active = places.unknown = False


def out():
    """Torch's functions are its own again."""
    from . import clock, guard, weave

    if guard.off and not guard.told:
        return
    if clock.ring.is_open:
        clock.ended()
    guard.off = True
    os.environ.pop("FLATOUT_RING", None)
    for woven in weave.known.values():
        if woven.function.__code__ is woven.hooked:
            woven.rest()
            _resting.append(woven)
