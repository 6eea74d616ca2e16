"""Changes that alter the numbers that come out, only with `--allow`: precision, compiling, padding. The loss guard looks at each."""

from torch.utils.data import DataLoader

from _flatout_probe import model, variants
from _flatout_probe.patches import amp

from .. import padding
from ..control import LeftAlone
from .change import Change
from .loader import Refused


def propose(auto):
    found = []
    if "precision" in auto.allowed:
        found += precision(auto.torch)
    if "padding" in auto.allowed:
        found.append(Trim(auto))
    if "compile" in auto.allowed:
        found.append(Compile())
    if "batch" in auto.allowed:
        # Another batch size is another number of steps per epoch: only whole runs tell whether it is as good.
        found.append(Refused("loader.batch_size", "needs-tune"))
    return found


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
        switch = variants.switch_of(torch, "amp=bf16")
        if switch is not None:
            found.append(Numbers("amp", "bf16", switch, 1.3))
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
    changes_numbers = True

    def __init__(self, auto):
        super().__init__("padding.trim", "on", 1.25)
        self.auto, self.reason = auto, None

    def put(self):
        loader = self.auto.control.find()
        iterator = self.auto.iterator_of(loader)
        if type(loader) is not DataLoader or loader.num_workers or self.auto.control.source is not None or iterator is None:
            raise LeftAlone("has-workers")
        self.loader, self.fetcher, self.own = loader, iterator._dataset_fetcher, loader.collate_fn
        changed = padding.Trimmed(self.own, self.tell)
        self.fetcher.collate_fn = vars(loader)["collate_fn"] = changed
        return None

    def tell(self, reason):
        self.reason = self.reason or reason

    def back(self):
        self.fetcher.collate_fn = vars(self.loader)["collate_fn"] = self.own
        iterator = self.auto.iterator_of(self.loader)
        if iterator is not None and getattr(iterator, "_dataset_fetcher", None) is not None:
            iterator._dataset_fetcher.collate_fn = self.own

    def failed(self):
        return self.reason
