"""Where batches come from: whole batches, or workers."""

import os

from _flatout_probe import clock

from .. import observe, walk
from ..available import available_bytes
from ..batched import PROVED, SPREAD, plan_for
from ..control import LeftAlone, knows_sampler
from ..feed import Whole
from ..pool import HEAD_S, MOST_HEAD, Pool
from ..spare import resident_bytes
from ..trials.own_loader import has_shared_memory, is_forked
from .change import Change

# Below this share of the time there is nothing to gain that could be measured.
WAITING = 0.04
# Batches that each worker makes ahead, and with a longer queue.
PREFETCH, LONGER = 2, 4
# Workers cost memory, and each is a process: they must be worth it.
WORTH_WORKERS = 1.03
# A gain that is predicted to be smaller is not tried.
WORTH_TRYING = 1.06
# Of a predicted gain, what usually comes true.
COMES_TRUE = 0.8
# Memory that must be free for each worker: its own objects, and pages that counting references copies.
PER_WORKER = 256 << 20
# Seconds that this process takes to receive a batch from a worker, and for each of its tensors.
RECEIVE_S, RECEIVE_TENSOR_S = 100e-6, 30e-6
# CPUs that must be free for workers to get further ahead: those that are always busy cannot.
FREE = 0.5
# Seconds to start workers, for each worker, and for each of them by the size of this process.
START_S, START_EACH_S, START_GIB_S = 0.03, 0.012, 0.012
# Part of the time at the beginnings of epochs from which on workers should stay.
STARTING = 0.03


def propose(auto):
    waiting = auto.before.share(clock.DATA)
    if waiting < WAITING:
        return []
    try:
        loader = auto.control.find()
    except LeftAlone as reason:
        return [Refused("loader.num_workers", str(reason))]
    source = auto.control.source
    if isinstance(source, Whole):
        return []
    now = source.workers if isinstance(source, Pool) else 0 if source is not None else loader.num_workers
    found = [Batched(auto, loader, waiting)]
    starting = auto.starts_s / max(auto.before.seconds(), 1e-9)
    if source is None and now and not loader.persistent_workers and starting >= STARTING:
        found.append(Workers(auto, loader, now, waiting, 1.0 / (1.0 - COMES_TRUE * min(starting, waiting)), key="loader.persistent_workers", value="on"))
    found += more_workers(auto, loader, now, waiting)
    if now and now <= auto.cpus and (auto.usage.free() or 0.0) >= FREE:
        found.append(Longer(auto, loader, now))
    return found


def more_workers(auto, loader, now, waiting):
    """The number of workers that is worth a trial, or why none is."""
    count = wanted(auto, now, waiting)
    if count is None:
        return []
    if count < now:
        # More workers than CPUs stand in each other's way; how much nobody knows before.
        change = Workers(auto, loader, count, waiting, WORTH_TRYING)
        change.predicted = False
        return [change]
    bound, reason = predicted(auto, now, count, waiting)
    if bound < WORTH_TRYING:
        return [Refused("loader.num_workers", reason)]
    return [Workers(auto, loader, count, waiting, 1.0 + COMES_TRUE * (bound - 1.0))]


def wanted(auto, now, waiting):
    """How many workers to try next; None where no other number is left."""
    failed = {int(value): reason for key, value, reason in outcomes(auto) if key == "loader.num_workers" and reason}
    if failed:
        # One that made it slower may have been too many; one that changed nothing shows that workers are not what is missing.
        least = min(failed)
        fewer = least // 2
        return fewer if failed[least] == "slower" and fewer > now else None
    if now > auto.cpus:
        return auto.cpus
    # As many as make a batch in the time of a step; those that are there already wait for each other.
    need = 2 * now if now else int(1.25 * waiting / max(1.0 - waiting, 0.02)) + 1
    count = min(need, auto.cpus)
    return count if count > now else None


def outcomes(auto):
    return [(*setting.split("=", 1), reason) for setting, reason in auto.outcomes]


def predicted(auto, now, count, waiting):
    """What so many workers can give at most, and what limits it."""
    step_s = auto.before.step_s()
    rest_s, wait_s = (1.0 - waiting) * step_s, waiting * step_s
    own, free = auto.usage.own(), auto.usage.free()
    supply_s = step_s * now / count if now else wait_s / count
    received_s = rest_s + RECEIVE_S + RECEIVE_TENSOR_S * auto.shapes.tensors()
    busy_s = 0.0
    if free is not None:
        # The program's own workers are not measured: each is taken to use a CPU.
        used = min(own + (now or 0), max(auto.cpus - free, own))
        others = max(auto.cpus - used - free, 0.0)
        # Where others use the machine as well, the kernel still gives each process its share.
        share = auto.cpus * (count + 1) / (count + 1 + others)
        busy_s = step_s * used / max(used + free, share, 1e-9)
    after_s = max(supply_s, received_s, busy_s, 1e-9)
    return step_s / after_s, "cpus-busy" if after_s == busy_s else "no-gain-expected"


class Refused(Change):
    """What is not even tried, for the report."""

    is_refused = True

    def __init__(self, key, reason):
        super().__init__(key, "auto", 1.0)
        self.reason = reason

    def put(self):
        return self.reason


class Batched(Change):
    key = "loader.batched"

    def __init__(self, auto, loader, waiting):
        super().__init__(self.key, "on", 1.0 / (1.0 - 0.9 * waiting))
        self.auto, self.loader, self.predicted = auto, loader, True
        # Samples that are compared first, and batches that are fetched in both ways.
        batch = getattr(loader, "batch_size", None) or SPREAD
        self.cost_s = auto.before.step_s() * waiting * (SPREAD / batch + PROVED)

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

    def __init__(self, auto, loader, count, waiting, expected, key="loader.num_workers", value=None):
        super().__init__(key, value or count, expected)
        self.auto, self.loader, self.count, self.predicted = auto, loader, count, True
        self.fetch_s = waiting * auto.before.step_s()
        self.head = 0 if loader.num_workers else min(max(int(HEAD_S / max(auto.before.step_s(), 1e-6)), 1), MOST_HEAD)
        self.settle = self.head + count * PREFETCH + 3
        self.cost_s = START_S + count * (START_EACH_S + START_GIB_S * resident_bytes() / 2**30) + (0 if loader.num_workers else 2 * self.fetch_s)

    def put(self):
        control, loader = self.auto.control, self.loader
        reason = unfit(self.auto.torch, loader, control.info, self.count)
        if reason is not None:
            return reason
        iterator = self.auto.iterator_of(loader)
        pin = bool(getattr(iterator, "_pin_memory", loader.pin_memory))
        self.before = control.source
        # Workers of the program's own read the same data: nothing is to be proved then.
        self.pool = Pool(loader, control.info, self.count, PREFETCH, pin, loader.num_workers > 0, self.fetch_s, self.head)
        control.use(self.pool)
        return None

    def back(self):
        self.pool.retired = True
        self.auto.control.use(self.before)

    def failed(self):
        return self.pool.failed

    def end(self):
        self.pool.end()


class Longer(Change):
    """Workers make more batches ahead: for items that take unevenly long. The workers go on as they are."""

    def __init__(self, auto, loader, workers):
        super().__init__("loader.prefetch_factor", LONGER, 1.02)
        self.auto, self.loader, self.workers = auto, loader, workers

    def put(self):
        source, loader = self.auto.control.source, self.loader
        self.pool = source if isinstance(source, Pool) else None
        self.iterator = self.pool.iterator if self.pool is not None else self.auto.iterator_of(loader)
        self.own = getattr(self.iterator, "_prefetch_factor", None)
        if self.own is None or self.own >= LONGER:
            return "no-gain-expected"
        if not knows_sampler(loader):
            return "own-sampler"
        if not has_shared_memory():
            return "no-shared-memory"
        if available_bytes() < 4 * self.workers * LONGER * max(self.auto.shapes.bytes(), 1):
            return "no-memory"
        self.turn(LONGER)
        return None

    def turn(self, factor):
        if self.pool is not None:
            self.pool.depth = self.pool.workers * factor
        else:
            vars(self.loader)["prefetch_factor"] = factor
        before, self.iterator._prefetch_factor = self.iterator._prefetch_factor, factor
        if self.pool is None:
            for _ in range(self.workers * (factor - before)):
                self.iterator._try_put_index()

    def back(self):
        # Batches that were asked for come all the same: a queue is only made shorter while it is short.
        if self.pool is not None:
            self.pool.depth = self.pool.workers * self.own
        else:
            vars(self.loader)["prefetch_factor"] = self.own


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
