"""The loader that feeds the training, and where its batches come from now. Kept from one epoch to the next."""

import weakref

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import dataloader as torch_loader

from _flatout_probe import guard
from _flatout_probe.patches import loader as watched

from .feed import Feed

# Their iterators draw random numbers at their beginning only, and nobody else sees when the next index is asked for.
SAMPLERS = ("torch.utils.data.sampler", "torch.utils.data.distributed", "accelerate.data_loader", "transformers.trainer_pt_utils")
SAMPLERS += ("lightning.pytorch.overrides.distributed", "pytorch_lightning.overrides.distributed", "lightning.fabric.utilities.distributed")


class LeftAlone(Exception):
    """Why a change is not made, as the code that the record keeps."""


class Control:
    def __init__(self, iterator_of):
        self.iterator_of, self.feed, self.source = iterator_of, None, None
        self.loader = self.info = self.reason = None
        # So many of the sampler's batches are made into one.
        self.merged = 1
        # What changes each batch, wherever it comes from.
        self.after = None

    def find(self):
        """The one loader that feeds the steps. Raises `LeftAlone`."""
        ours = [(one, info) for one, info in watched.known() if info.feeds]
        if self.loader is not None and self.loader() is not None:
            return self.loader()
        if len(ours) != 1:
            raise LeftAlone("several-loaders" if ours else "no-loader")
        loader, info = ours[0]
        if type(loader) is not DataLoader:
            raise LeftAlone("own-loader")
        if isinstance(loader.dataset, IterableDataset):
            raise LeftAlone("iterable")
        if loader.batch_sampler is None:
            raise LeftAlone("no-batching")
        self.loader, self.info = weakref.ref(loader), info
        # The data set is held, so that its id stays its own.
        self.shape, self.dataset = self.shape_of(loader), loader.dataset
        return loader

    def use(self, source):
        """Batches come from here; None: the program's own way."""
        loader = self.loader()
        iterator = self.iterator_of(loader) if loader is not None else None
        if self.source is None and source is not None:
            replace_iterators(self)
        self.source = source
        if iterator is None:
            return
        if self.feed is None or self.feed.reference() is not iterator:
            self.feed = Feed(iterator, self.merged, self.after)
        self.feed.merged, self.feed.after = self.merged, self.after
        self.feed.put(source)

    def follow(self, after):
        """Each batch goes through this function; None: as it comes."""
        self.after = after
        loader = self.loader()
        iterator = self.iterator_of(loader) if loader is not None else None
        if iterator is None:
            return
        if self.feed is None or self.feed.reference() is not iterator:
            self.feed = Feed(iterator, self.merged)
        self.feed.after = after
        if after is None and self.feed.source is None:
            self.feed.release(iterator)

    def iterated(self, loader, iterator):
        """The program asked for a new iterator."""
        if (self.source is None and self.after is None) or self.loader is None:
            return
        if self.loader() is not loader and not self.adopt(loader):
            return
        if self.feed is not None and self.feed.reference() is iterator:
            # Workers of the program's own that stay: the same iterator begins again.
            if self.source is not None:
                self.feed.hold(iterator)
                self.source.begin(self.feed)
            return
        self.feed = Feed(iterator, self.merged, self.after)
        self.feed.put(self.source)
        if loader.num_workers and self.source is not None:
            self.feed.prime()

    def adopt(self, loader):
        """Another loader over the same data, in the place of one that is gone: some programs make one for every epoch."""
        before, info = self.loader(), watched.info_of(loader)
        living = before is not None and self.iterator_of(before) is not None
        if living or info is None or type(loader) is not DataLoader or self.shape_of(loader) != self.shape:
            return False
        self.loader, self.info = weakref.ref(loader), info
        return True

    def shape_of(self, loader):
        """What must be the same for the batches of a source to be this loader's."""
        return id(loader.dataset), id(loader.collate_fn), loader.num_workers, loader.pin_memory, type(loader.sampler)


def knows_sampler(loader):
    """Whether indices may be drawn before they are asked for."""
    found = [loader.batch_sampler]
    for one in found:
        kind = type(one)
        if kind.__module__ not in SAMPLERS:
            return False
        if kind.__name__ == "RandomSampler" and one.replacement and one.generator is not None:
            return False
        found += [inner for name in ("sampler", "batch_sampler") if (inner := vars(one).get(name)) is not None]
    return True


def replace_iterators(control):
    """While batches come from elsewhere, a new epoch needs no workers of the loader's own."""
    original = DataLoader._get_iterator
    if hasattr(original, "control"):
        original.control = control
        return

    @guard.like(original)
    def _get_iterator(self):
        ours = _get_iterator.control
        if guard.off or ours.source is None or ours.loader() is not self or not self.num_workers or self.persistent_workers:
            return original(self)
        own = vars(self)
        before = own["num_workers"], own["timeout"]
        own["num_workers"] = own["timeout"] = 0
        try:
            return torch_loader._SingleProcessDataLoaderIter(self)
        finally:
            own["num_workers"], own["timeout"] = before

    _get_iterator.control = control
    DataLoader._get_iterator = _get_iterator
