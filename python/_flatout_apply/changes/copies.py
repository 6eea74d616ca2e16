"""Copies to the GPU: pinned memory, and copies that the host does not wait for."""

import weakref

from _flatout_probe import clock

from ..control import LeftAlone
from ..feed import Whole
from ..pool import Pool
from .change import Change
from .loader import PREFETCH, START_S, unfit

# Below this share of the time there is nothing to gain that could be measured.
COPYING = 0.02
# Copies after which those before are looked at.
LOOKED_AT = 16


def propose(auto):
    torch = auto.torch
    if not torch.cuda.is_initialized() or auto.before.share(clock.TRANSFER) < COPYING:
        return []
    copying = auto.before.share(clock.TRANSFER)
    try:
        loader = auto.control.find()
    except LeftAlone:
        return []
    iterator = auto.iterator_of(loader)
    if iterator is None:
        return []
    if not iterator._pin_memory and not auto.holds(Pinned):
        return [Pinned(auto, loader, 1.0 / (1.0 - copying / 2))]
    return [Overlapped(auto, 1.0 / (1.0 - copying * 0.9))]


class Pinned(Change):
    worth, settle = 1.01, 2 * PREFETCH + 3

    def __init__(self, auto, loader, expected):
        super().__init__("loader.pin_memory", "on", expected)
        self.auto, self.loader, self.pool, self.predicted = auto, loader, None, True
        self.cost_s = START_S if loader.num_workers or isinstance(auto.control.source, Pool) else 0.0

    def put(self):
        control = self.auto.control
        source, iterator = control.source, self.auto.iterator_of(self.loader)
        workers = source.workers if isinstance(source, Pool) else self.loader.num_workers
        self.before = source
        if workers and not isinstance(source, Whole):
            # Pinning belongs to a loader's workers: others take their place.
            reason = unfit(self.auto.torch, self.loader, control.info, workers)
            if reason is not None:
                return reason
            self.pool = Pool(self.loader, control.info, workers, PREFETCH, True, True, self.auto.before.step_s())
            control.use(self.pool)
        else:
            iterator._pin_memory, iterator._pin_memory_device = True, None
        vars(self.loader)["pin_memory"] = True
        return None

    def back(self):
        vars(self.loader)["pin_memory"] = False
        if self.pool is not None:
            self.pool.retired = True
            self.auto.control.use(self.before)
        else:
            iterator = self.auto.iterator_of(self.loader)
            if iterator is not None:
                iterator._pin_memory = False

    def failed(self):
        return self.pool.failed if self.pool is not None else None

    def end(self):
        if self.pool is not None:
            self.pool.end()


class Overlapped(Change):
    """`to` and `cuda` of pinned batches do not wait. Only where the program does not write into a batch after it has copied it: the copy
    may still be under way. That is looked at again and again, and a batch that was written into ends it."""

    def __init__(self, auto, expected):
        super().__init__("copy.non_blocking", "on", expected)
        self.torch, self.copied, self.reason, self.originals, self.predicted = auto.torch, [], None, None, True

    def put(self):
        tensor = self.torch.Tensor
        self.originals = {name: getattr(tensor, name) for name in ("to", "cuda")}
        for name, original in self.originals.items():
            setattr(tensor, name, self.without_waiting(original))
        return None

    def without_waiting(self, original):
        def copy(tensor, *args, **kwargs):
            try:
                plain = not tensor.is_cuda and len(args) < 2 and "non_blocking" not in kwargs and self.reason is None
                if plain and tensor.is_pinned():
                    kwargs["non_blocking"] = True
                    self.copied.append((weakref.ref(tensor), tensor._version))
                    if len(self.copied) > LOOKED_AT:
                        self.look()
            except RuntimeError:
                pass
            return original(tensor, *args, **kwargs)

        copy.__wrapped__ = original
        return copy

    def look(self):
        copied, self.copied = self.copied[:-1], self.copied[-1:]
        for reference, version in copied:
            tensor = reference()
            if tensor is not None and tensor._version != version:
                self.reason = "writes-into-batch"

    def back(self):
        for name in self.originals:
            # The class of torch's own has them.
            if name in vars(self.torch.Tensor):
                delattr(self.torch.Tensor, name)

    def failed(self):
        return self.reason
