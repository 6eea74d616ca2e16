"""Changes that alter the numbers that come out, only with `--allow`: precision, larger batches, compiling, padding. The loss guard looks at each."""

from torch.utils.data import BatchSampler

from _flatout_probe.patches import amp

from .. import model, padding
from ..control import LeftAlone, knows_sampler
from ..feed import Own
from ..pool import Pool
from ..trials import variants
from .change import Change
from .loader import PREFETCH, Refused, unfit

# Batches become so many times as large at most, and only while the GPU's memory holds twice what was used.
MOST_MERGED, ROOM = 8, 0.8


def propose(auto):
    found = []
    if "precision" in auto.allowed:
        found += precision(auto.torch)
    if "padding" in auto.allowed:
        found.append(Trim(auto))
    if "compile" in auto.allowed:
        found.append(Compile())
    if "batch" in auto.allowed:
        found += larger(auto)
    return found


def larger(auto):
    """Twice the samples in a batch, as long as that gives more samples per second."""
    try:
        loader = auto.control.find()
    except LeftAlone as reason:
        return [Refused("loader.batch_size", str(reason))]
    if type(loader.batch_sampler) is not BatchSampler or not loader.batch_size:
        return [Refused("loader.batch_size", "own-batch-sampler")]
    return [Larger(auto, loader)] if auto.control.merged < MOST_MERGED else []


def precision(torch):
    found = []
    if torch.cuda.is_initialized():
        switch = variants.switch_of(torch, "tf32=on")
        if switch is not None and torch.cuda.get_device_capability()[0] >= 8:
            found.append(Numbers("tf32", "on", switch, 1.2))
        fits = torch.cuda.is_bf16_supported()
    else:
        fits = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if fits and not amp.in_use():
        found.append(Autocast(torch))
    return found


class Numbers(Change):
    changes_numbers, settle = True, 4

    def __init__(self, key, value, switch, expected):
        super().__init__(key, value, expected)
        self.switch = switch

    def put(self):
        self.switch(True)
        return None

    def back(self):
        self.switch(False)


class Larger(Change):
    """Two of the sampler's batches are made into one. The learning rate stays, and an epoch has half as many steps."""

    changes_numbers, worth, scale, settle = True, 1.05, 2, 4

    def __init__(self, auto, loader):
        self.merged = 2 * auto.control.merged
        super().__init__("loader.batch_size", loader.batch_size * self.merged, 1.2)
        self.auto, self.loader, self.pool = auto, loader, None

    def put(self):
        control, torch = self.auto.control, self.auto.torch
        if not knows_sampler(self.loader):
            return "own-sampler"
        if torch.cuda.is_initialized() and self.scale * torch.cuda.max_memory_allocated() > ROOM * torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory:
            return "no-memory"
        self.before, source = control.source, control.source
        if source is None and self.loader.num_workers:
            workers = self.loader.num_workers
            reason = unfit(torch, self.loader, control.info, workers)
            if reason is not None:
                return reason
            pin = bool(getattr(self.auto.iterator_of(self.loader), "_pin_memory", False))
            source = self.pool = Pool(self.loader, control.info, workers, PREFETCH, pin, True, self.auto.before.step_s())
        control.merged = self.merged
        control.use(source or Own())
        return None

    def back(self):
        control = self.auto.control
        control.merged //= self.scale
        if self.pool is not None:
            self.pool.retired = True
        control.use(self.before)

    def failed(self):
        return self.pool.failed if self.pool is not None else None

    def end(self):
        if self.pool is not None:
            self.pool.end()


class Autocast(Numbers):
    """The model is looked for when the trial begins: that walks through all objects of the program."""

    def __init__(self, torch):
        super().__init__("amp", "bf16", None, 1.3)
        self.torch = torch

    def put(self):
        self.switch = variants.switch_of(self.torch, "amp=bf16")
        return "compiled-already" if self.switch is None else super().put()


class Compile(Change):
    # The first steps compile.
    changes_numbers, settle, worth = True, 10, 1.05

    def __init__(self):
        super().__init__("compile", "on", 1.1)

    def put(self):
        self.module = model.find()
        if self.module is None:
            return "no-model"
        if getattr(self.module, "_compiled_call_impl", None) is not None or type(self.module).__name__ == "OptimizedModule":
            return "compiled-already"
        return model.compile_found(None)

    def back(self):
        self.module._compiled_call_impl = None


class Trim(Change):
    """Batches are cut as they come: in this process, whoever made them."""

    changes_numbers = True

    def __init__(self, auto):
        super().__init__("padding.trim", "on", 1.25)
        self.auto, self.reason = auto, None

    def put(self):
        self.auto.control.find()
        self.auto.control.follow(self.trimmed)
        return None

    def trimmed(self, batch):
        if self.reason is not None:
            return batch
        try:
            return padding.trimmed(batch, self.tell)
        except Exception:
            # A batch of some other kind is the program's as it is.
            self.reason = "no-mask"
            return batch

    def tell(self, reason):
        self.reason = self.reason or reason

    def back(self):
        self.auto.control.follow(None)

    def failed(self):
        return self.reason
