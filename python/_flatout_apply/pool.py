"""Workers over the program's data that take the place of its loader's own way, between two batches and from one epoch to the next.

The indices come from the program's own sampler, in its order; the batches are given in that order. Every index that was drawn and not
yet given is known, so whatever becomes of a worker, this process fetches what is missing: no sample is lost or comes twice. A worker
that draws random numbers gives no batch (the draw belongs to this process): then the pool is given up.
"""

import contextlib
import gc
import multiprocessing.process
import signal
import warnings
from time import monotonic

import torch
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_loader

from _flatout_probe import guard
from _flatout_probe.patches import loader as watched

from . import randomness
from .same import same

# Batches of the workers that are compared with this process's own.
PROVED = 2
# A worker may take so much longer than a batch takes here, and at least so many seconds.
PATIENCE, PATIENCE_S = 50, 20.0
# Those that have not given a batch yet, such as workers that wait for a lock that was held when they were forked.
PATIENCE_FIRST_S = 5.0
# This process goes on by itself for so many seconds, in batches, while the workers start.
HEAD_S, MOST_HEAD = 0.25, 64


class Drew:
    """Instead of a batch: random numbers were drawn for it."""


class Ended(Exception):
    """The sampler has no more indices, and all batches were given."""


class Back(Exception):
    """All that was asked for was given; the program's own way comes next."""


class Checked:
    """The program's collating, in a worker; tells when a batch drew random numbers."""

    def __init__(self, collate):
        self.collate, self.state = collate, None

    def begin(self, worker):
        gc.freeze()
        self.state = randomness.state()

    def __call__(self, samples):
        batch = self.collate(samples)
        return batch if self.state is None or randomness.state() == self.state else Drew()


class Gate:
    """The sampler of the pool: the indices of the feed that owns it."""

    def __init__(self):
        self.feed, self.closed, self.is_full = None, False, bool

    def __iter__(self):
        return self

    def __next__(self):
        if self.closed or self.feed is None or self.feed.ended or self.is_full():
            raise StopIteration
        try:
            indices = self.feed.draw()
        except StopIteration:
            self.feed.ended = True
            raise
        self.feed.drawn.append(indices)
        return indices


class Pool:
    # Its workers end with the last batch that was drawn for them.
    retired = False

    def __init__(self, loader, info, workers, prefetch, pin, proved, fetch_s, head=0):
        # Batches that come first and are still fetched here.
        self.head, self.own = head, 0
        self.gate, self.stale, self.failed, self.proofs = Gate(), 0, None, PROVED if proved else 0
        self.workers, self.depth = workers, workers * prefetch
        self.fetch_s, self.answered = fetch_s, False
        checked = Checked(loader.collate_fn)
        more = {"multiprocessing_context": loader.multiprocessing_context} if loader.num_workers else {}
        with randomness.Kept(), warnings.catch_warnings(), own_signals():
            warnings.simplefilter("ignore")
            with guard.unseen():
                made = DataLoader(
                    loader.dataset,
                    batch_sampler=self.gate,
                    num_workers=workers,
                    collate_fn=checked,
                    pin_memory=pin,
                    prefetch_factor=prefetch,
                    persistent_workers=True,
                    worker_init_fn=checked.begin,
                    **more,
                )
            # Its workers' times are counted for the program's loader.
            watched.starting = info.number + 1
            try:
                self.iterator = torch_loader._MultiProcessingDataLoaderIter(made)
            finally:
                watched.starting = 0
        # An error raised by a signal's handler would come at any line of the program.
        torch._C._remove_worker_pids(id(self.iterator))
        self.iterator._worker_pids_set = False
        self.iterator._get_data = self.get
        self.gate.is_full = self.is_full
        # A program that counts its processes counts its own.
        for worker in self.iterator._workers:
            multiprocessing.process._children.discard(worker)

    def is_full(self):
        """All that was sent and not given, also of an epoch that was left: torch asks for one more with each that is given."""
        return self.iterator._send_idx - self.iterator._rcvd_idx >= self.depth

    def get(self):
        """A worker's answer; an error where none comes. Called by the iterator."""
        least_s = PATIENCE_S if self.answered else min(PATIENCE_S, PATIENCE_FIRST_S)
        until, iterator = monotonic() + max(least_s, PATIENCE * self.fetch_s), self.iterator
        while monotonic() < until:
            # This also looks whether all workers live.
            found, data = iterator._try_get_data(0.2)
            if found:
                self.answered = True
                return data
            if iterator._pin_memory and not iterator._pin_memory_thread.is_alive():
                raise RuntimeError("pinning ended")
        raise TimeoutError("workers")

    def begin(self, feed):
        """The next batches are this feed's."""
        self.gate.closed = False
        if self.gate.feed is not None and self.gate.feed is not feed:
            self.stale += len(self.gate.feed.drawn) - self.own
            self.own = 0
        self.gate.feed = feed
        while self.head and not feed.ended:
            self.head -= 1
            self.own += next(self.gate, None) is not None
        self.fill(feed)

    def fill(self, feed):
        while not self.failed and not feed.ended and not self.gate.closed and not self.is_full():
            before = len(feed.drawn)
            self.iterator._try_put_index()
            if len(feed.drawn) == before:
                return

    def take(self, feed):
        if self.gate.feed is not feed:
            # Another iterator of the same loader has the workers by now.
            return feed.rest()
        self.fill(feed)
        if not feed.drawn:
            raise Ended if feed.ended else Back
        if self.failed:
            return feed.rest()
        if self.own:
            self.own -= 1
            return feed.fetch(feed.drawn.popleft())
        indices, data = feed.drawn[0], None
        try:
            while self.stale:
                self.stale -= 1
                self.next()
            data = self.next()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.give_up(reason_of(error))
        feed.drawn.popleft()
        if type(data) is Drew:
            self.give_up("draws-random")
        if self.failed:
            # The program's own error, if that is what it was.
            return feed.fetch(indices)
        if self.proofs < PROVED:
            self.proofs += 1
            own = feed.fetch(indices)
            if not same(own, data):
                self.give_up("differs")
            return own
        return data

    def next(self):
        # Not `__next__`, which the probe counts as a batch of its own.
        return self.iterator._next_data()

    def give_up(self, reason):
        self.failed = reason
        self.kill()

    def close(self):
        """No more indices; what was drawn is still given."""
        self.gate.closed = True

    def kill(self):
        for worker in self.iterator._workers:
            with contextlib.suppress(Exception):
                worker.kill()
        self.end()

    def end(self):
        self.gate.closed = True
        with contextlib.suppress(Exception):
            self.iterator._shutdown_workers()


@contextlib.contextmanager
def own_signals():
    """Torch's handler for the end of a worker would stay in the program."""
    handling = torch_loader._utils.signal_handling
    before, was = signal.getsignal(signal.SIGCHLD), handling._SIGCHLD_handler_set
    try:
        yield
    finally:
        if not was and handling._SIGCHLD_handler_set and before is not None:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGCHLD, before)
                handling._SIGCHLD_handler_set = False


def reason_of(error):
    if isinstance(error, TimeoutError):
        return "workers-hang"
    return "workers-die" if "exited unexpectedly" in str(error) else "workers-fail"
