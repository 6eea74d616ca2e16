"""One iterator of the program's loader whose batches come from elsewhere. The iterator object stays the program's; only its `_next_data`
is ours. Nothing is taken from the sampler that is not given to the program, in the same order."""

import weakref
from collections import deque

from torch.utils.data import _utils
from torch.utils.data import dataloader as torch_loader

from .pool import Back, Ended


class Feed:
    def __init__(self, iterator, merged=1, after=None):
        # `after` changes each batch that is given to the program.
        self.merged, self.after = merged, after
        self.reference = weakref.ref(iterator)
        # Workers of the program's own: what they were asked for comes first.
        self.has_workers = isinstance(iterator, torch_loader._MultiProcessingDataLoaderIter)
        self.sampler, self.source, self.drawn, self.ended = None, None, deque(), False
        # What comes when all that was drawn for the present source was given; a list of one, since None is the program's own way.
        self.following, self.early = [], []
        self.fetcher = getattr(iterator, "_dataset_fetcher", None)
        iterator._next_data = self.next

    def put(self, source):
        """Batches come from here, as soon as those that were drawn for another source were given. None: the program's own way."""
        if self.source is not None:
            self.source.close()
        if self.drawn:
            self.following = [source]
        else:
            self.begin(source)

    def begin(self, source):
        iterator, before = self.reference(), self.source
        if before is not None and before is not source and before.retired:
            before.end()
        if iterator is None:
            return
        if source is None:
            self.release(iterator)
            return
        self.source = source
        iterator._next_data = self.next
        self.hold(iterator)
        source.begin(self)

    def prime(self):
        """Draws the first indices now: loaders with workers do so when an epoch begins."""
        try:
            if not self.drawn and not self.early:
                self.early.append(self.draw_one())
        except StopIteration:
            pass

    def next(self):
        batch = self.untouched()
        return batch if self.after is None else self.after(batch)

    def untouched(self):
        iterator = self.reference()
        own = type(iterator)._next_data
        if self.source is None:
            return own(iterator)
        if self.has_workers:
            self.hold(iterator)
            if iterator._rcvd_idx < iterator._send_idx:
                return own(iterator)
        try:
            return self.source.take(self)
        except Ended:
            return own(iterator)
        except Back:
            following = self.following.pop() if self.following else None
            self.begin(following)
            return own(iterator) if following is None else self.untouched()

    def hold(self, iterator):
        """The program's own workers get no more indices. A loader whose workers stay begins a new epoch with the same iterator."""
        if self.has_workers and iterator._sampler_iter is not NOTHING:
            self.sampler, self.ended = iterator._sampler_iter, False
            iterator._sampler_iter = NOTHING

    def release(self, iterator):
        """The program's own way again."""
        self.source = None
        if self.has_workers and iterator._sampler_iter is NOTHING:
            iterator._sampler_iter = self.sampler
            for _ in range(iterator._prefetch_factor * iterator._num_workers):
                iterator._try_put_index()
        elif not self.has_workers and self.after is None:
            iterator.__dict__.pop("_next_data", None)

    def draw(self):
        """The indices of a batch; those of several where batches are larger."""
        indices = self.draw_one()
        for _ in range(self.merged - 1 if type(indices) is list else 0):
            try:
                indices = indices + self.draw_one()
            except StopIteration:
                break
        return indices

    def draw_one(self):
        if self.early:
            return self.early.pop()
        iterator = self.reference()
        if iterator is None:
            raise StopIteration
        return next(self.sampler) if self.has_workers else iterator._next_index()

    def rest(self):
        """What was drawn and not given, fetched here; then the program's own way."""
        if not self.drawn:
            raise Ended if self.ended else Back
        return self.fetch(self.drawn.popleft())

    def fetch(self, indices):
        """A batch the program's way, in this process."""
        iterator = self.reference()
        if self.fetcher is None:
            kind, collate = iterator._dataset_kind, iterator._collate_fn
            self.fetcher = torch_loader._DatasetKind.create_fetcher(kind, iterator._dataset, iterator._auto_collation, collate, iterator._drop_last)
        batch = self.fetcher.fetch(indices)
        return _utils.pin_memory.pin_memory(batch, iterator._pin_memory_device) if iterator._pin_memory else batch


class Nothing:
    """A sampler's iterator that is at its end."""

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


NOTHING = Nothing()


class Whole:
    """Whole batches, fetched in this process when they are asked for."""

    retired = False

    def __init__(self, plan):
        self.plan, self.closed, self.failed = plan, False, None

    def begin(self, feed):
        self.closed = False

    def take(self, feed):
        if self.closed:
            raise Back
        try:
            indices = feed.draw()
        except StopIteration:
            feed.ended = True
            raise Ended from None
        if self.plan.reason is not None or type(indices) is not list:
            self.failed = self.failed or self.plan.reason or "own-sampler"
            return feed.fetch(indices)
        batch = self.plan.fetch(indices, feed.fetch)
        iterator = feed.reference()
        if iterator._pin_memory:
            batch = _utils.pin_memory.pin_memory(batch, iterator._pin_memory_device)
        return batch

    def close(self):
        self.closed = True

    def end(self):
        self.closed = True


class Own:
    """Batches that are fetched the program's way, in this process."""

    retired, failed = False, None

    def __init__(self):
        self.closed = False

    def begin(self, feed):
        self.closed = False

    def take(self, feed):
        if self.closed:
            raise Back
        try:
            return feed.fetch(feed.draw())
        except StopIteration:
            feed.ended = True
            raise Ended from None

    def close(self):
        self.closed = True

    end = close
