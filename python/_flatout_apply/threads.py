"""`loader.threads`: batches that threads of this process fetch ahead. They help where items release the GIL, which nobody knows before:
the rate of the first batches is measured with and without them, and threads that gain nothing are taken back."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

from . import randomness, walk
from .control import knows_sampler
from .pool import Back, Ended

# Batches that are fetched the program's way before threads take over; the first is cold.
OWN, COLD = 6, 1
# Batches that each thread fetches ahead.
PREFETCH = 2
WORTH = 1.05


class Threads:
    retired = False

    def __init__(self, loader, count, tell):
        self.count, self.tell, self.failed, self.closed = count, tell, None, False
        # When each batch was asked for: the program's steps are in between, so that what threads take from them counts.
        self.own, self.ours, self.futures, self.feed = [], [], deque(), None
        self.cold, self.timed = count * PREFETCH, 2 * count * PREFETCH
        self.reason = walk.hazard(loader.dataset, loader.collate_fn) or (None if knows_sampler(loader) else "own-sampler")
        self.executor = ThreadPoolExecutor(count, "flatout-loader") if self.reason is None else None
        if self.reason is not None:
            tell(self.reason)

    def begin(self, feed):
        self.closed, self.feed = self.reason is not None, feed
        self.futures.clear()

    def take(self, feed):
        if self.feed is not feed:
            return feed.rest()
        if self.closed and not feed.drawn:
            raise Back
        if len(self.own) < OWN and not feed.drawn:
            return self.timed_own(feed)
        self.fill(feed)
        if not feed.drawn:
            raise Ended if feed.ended else Back
        feed.drawn.popleft()
        batch = self.futures.popleft().result()
        self.count_time()
        return batch

    def timed_own(self, feed):
        try:
            indices = feed.draw()
        except StopIteration:
            feed.ended = True
            raise Ended from None
        self.own.append(perf_counter_ns())
        state = randomness.state()
        batch = feed.fetch(indices)
        if randomness.state() != state:
            self.give_up("draws-random")
        return batch

    def fill(self, feed):
        while not self.closed and not feed.ended and len(feed.drawn) < self.count * PREFETCH:
            try:
                indices = feed.draw()
            except StopIteration:
                feed.ended = True
                return
            feed.drawn.append(indices)
            self.futures.append(self.executor.submit(feed.fetch, indices))

    def count_time(self):
        """After enough batches: what a batch and its step take, with threads and without."""
        if len(self.ours) > self.cold + self.timed:
            return
        self.ours.append(perf_counter_ns())
        if len(self.ours) > self.cold + self.timed:
            own, ours = each_ns(self.own[COLD:]), each_ns(self.ours[self.cold :])
            if own < ours * WORTH:
                self.give_up("no-gain")
            else:
                self.tell(None)

    def give_up(self, reason):
        self.reason = self.reason or reason
        self.closed = True
        self.tell(self.reason)

    def close(self):
        self.closed = True

    def end(self):
        self.closed = True
        if self.executor is not None:
            self.executor.shutdown(wait=False)


def each_ns(times):
    return (times[-1] - times[0]) / (len(times) - 1)


def install(torch, count, tell):
    """Every loader that feeds the training without workers gets its threads."""
    from _flatout_probe.patches import loader as watched

    from .feed import Feed

    made = {}

    def iterated(loader, iterator):
        if type(loader) is not torch.utils.data.DataLoader or loader.num_workers or loader.batch_sampler is None or not torch.is_grad_enabled():
            return
        if isinstance(loader.dataset, torch.utils.data.IterableDataset):
            tell("iterable")
            return
        source = made.get(id(loader))
        if source is None or source[0] is not loader:
            source = made[id(loader)] = loader, Threads(loader, count, tell)
        if source[1].reason is None:
            Feed(iterator).put(source[1])

    watched.on_iterator.append(iterated)
