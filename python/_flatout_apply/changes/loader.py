"""Where batches come from: whole batches, or workers."""

import os

from _flatout_probe import clock
from _flatout_probe.own_loader import has_shared_memory, is_forked
from _flatout_probe.available import available_bytes

from .. import observe, walk
from ..batched import plan_for
from ..control import LeftAlone, knows_sampler
from ..feed import Whole
from ..pool import Pool
from .change import Change

# Below this share of the time there is nothing to gain that could be measured.
WAITING = 0.04
# Batches that each worker makes ahead, and with a longer queue.
PREFETCH, LONGER = 2, 4
# Workers cost memory, and each is a process: they must be worth it.
WORTH_WORKERS = 1.03
# Memory that must be free for each worker: its own objects, and pages that counting references copies.
PER_WORKER = 256 << 20


def propose(auto):
    waiting = auto.before.share(clock.DATA)
    if waiting < WAITING:
        return []
    try:
        loader = auto.control.find()
    except LeftAlone as reason:
        return [Refused("loader.num_workers", str(reason))]
    found, source = [], auto.control.source
    if not isinstance(source, Whole):
        found.append(Batched(auto, loader, waiting))
    if not isinstance(source, Whole):
        now = source.workers if source is not None else loader.num_workers
        found += [Workers(auto, loader, count, waiting) for count in counts(auto, now, waiting)]
    return found


def counts(auto, now, waiting):
    """Numbers of workers worth a trial, the best guess first."""
    own = 1.0 - waiting
    # As many as make a batch in the time of a step; those that are there already wait for each other.
    need = max(int(waiting / max(own, 0.02)) + 1, now + 1) if not now else 2 * now
    guess = min(need, auto.cpus)
    return [count for count in dict.fromkeys((guess, auto.cpus, max(auto.cpus // 2, 1))) if count > now]


class Refused(Change):
    """What is not even tried, for the report."""

    def __init__(self, key, reason):
        super().__init__(key, "auto", 1.0)
        self.reason = reason

    def put(self):
        return self.reason


class Batched(Change):
    key = "loader.batched"

    def __init__(self, auto, loader, waiting):
        super().__init__(self.key, "on", 1.0 / (1.0 - 0.95 * waiting))
        self.auto, self.loader = auto, loader

    def put(self):
        control = self.auto.control
        self.before = control.source
        if observe.saw(control.info.number, observe.DRAWS):
            return "draws-random"
        plan = plan_for(self.loader.dataset, self.loader.collate_fn)
        if plan.reason is not None:
            return plan.reason
        self.plan = plan
        control.use(Whole(plan))
        return None

    def back(self):
        self.auto.control.use(self.before)

    def failed(self):
        return self.plan.reason


class Workers(Change):
    worth = WORTH_WORKERS

    def __init__(self, auto, loader, count, waiting):
        super().__init__("loader.num_workers", count, 1.0 / (1.0 - waiting * count / (count + 1.0)))
        self.auto, self.loader, self.count, self.waiting = auto, loader, count, waiting
        self.settle = count * PREFETCH + 3

    def put(self):
        control, loader = self.auto.control, self.loader
        reason = unfit(self.auto.torch, loader, control.info, self.count)
        if reason is not None:
            return reason
        iterator = self.auto.iterator_of(loader)
        pin = bool(getattr(iterator, "_pin_memory", loader.pin_memory))
        fetch_s = self.waiting * self.auto.before.step_s()
        self.before = control.source
        # Workers of the program's own read the same data: nothing is to be proved then.
        self.pool = Pool(loader, control.info, self.count, PREFETCH, pin, loader.num_workers > 0, fetch_s)
        control.use(self.pool)
        return None

    def back(self):
        self.pool.retired = True
        self.auto.control.use(self.before)

    def failed(self):
        return self.pool.failed

    def end(self):
        self.pool.end()


def unfit(torch, loader, info, count):
    """Why other workers would not give the same batches, or cannot be."""
    if observe.saw(info.number, observe.DRAWS):
        return "draws-random"
    if observe.saw(info.number, observe.ASKS):
        return "asks-for-worker"
    if loader.num_workers and loader.worker_init_fn is not None and not only_seeds(loader.worker_init_fn):
        return "own-worker-init"
    if not knows_sampler(loader):
        return "own-sampler"
    if not is_forked(torch, loader):
        return "no-fork"
    if not has_shared_memory():
        return "no-shared-memory"
    if available_bytes() < count * PER_WORKER:
        return "no-memory"
    if os.getpid() != main_pid:
        return "no-fork"
    look = walk.asks_for_workers if loader.num_workers else walk.hazard
    return look(loader.dataset, loader.collate_fn)


def only_seeds(function):
    """Those of frameworks do nothing else, and data that draws no random numbers has no use for it. Without workers none is called."""
    return getattr(getattr(function, "func", function), "__module__", "").startswith(("transformers.", "accelerate.", "lightning.", "pytorch_lightning."))


main_pid = os.getpid()
