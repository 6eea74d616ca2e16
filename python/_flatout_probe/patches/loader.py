"""DataLoader: its arguments, the wait for each batch, epochs, and iterators that are made again."""

import os
import weakref
from operator import length_hint
from time import perf_counter_ns

from .. import clock, coast, contents, extension, guard, places, raw, sharding, spawning
from ..raw import batch_size, fields
from ..weave import weave
from . import evaluation, worker
from ..ring import L_BATCHES, L_EVAL_BATCHES, L_EVAL_WAIT, L_NUMBER, L_WAIT, LOADER_SLOTS, LOADER_WORDS, W_BATCHES, W_LOADERS

# By the loader's id: a reference to it and what is known of it. No dictionary of the loaders themselves: it would call their `__eq__`.
_loaders = {}
# The same for their iterators, with the state of each.
_iterators = {}
_count = 0
# The loader whose iterator is being made: forked workers inherit it, spawned ones read it from the environment.
starting = 0
# Iterators that are being made: their loader's id and the state, the innermost last.
_making = []
# A batch that was asked for: its iterator's id and state, when, and whether it is for an evaluation.
_asked = None
# How many samples torch's own samplers have, by their id, as they said themselves.
_sized = {}
_is_grad_enabled = None
# What the iterators' `__next__` became; a trial gives other batches there.
woven_next = None
# Called with a loader and its new iterator, and with a batch for the training, while the loop does not coast: `--auto` is.
on_iterator = []
on_got = []

# Of the batch that came last, when it was a usual one: its iterator's id and state, and its samples.
latest = None
# Loaders whose first batches came since the last step: a step makes them loaders that feed the training.
newly_fed = []


class Loader:
    __slots__ = ("number", "workers", "epoch", "told_batch", "feeds", "batches", "latest", "alike", "length", "contents")

    def __init__(self, number, workers, alike, several):
        self.number, self.workers, self.alike = number, workers, alike
        self.contents = contents.Contents(several)
        self.batches = self.length = self.latest = None
        self.epoch, self.told_batch, self.feeds = 0, False, False


def install(torch):
    from torch.utils.data import dataloader, sampler

    global _is_grad_enabled, woven_next
    _is_grad_enabled = torch.is_grad_enabled
    weave(sampler.SequentialSampler.__iter__, leave=counted)
    weave(sampler.RandomSampler.num_samples.fget, leave=sized)
    weave(dataloader.DataLoader.__init__, leave=made)
    weave(dataloader.DataLoader.__iter__, enter=iterating, leave=iterated, fail=not_iterated)
    enter, leave, fail = coast.hooks_of_next(ask, got, miss, _landed, _ended)
    woven_next = weave(dataloader._BaseDataLoaderIter.__next__, enter=enter, leave=leave, fail=fail)
    clock.enders.append(program_ended)


def known():
    """Loaders that live, each with what is known of it."""
    living = [(reference(), info) for reference, info in list(_loaders.values())]
    return [(loader, info) for loader, info in living if loader is not None]


def info_of(loader):
    found = _loaders.get(id(loader))
    return found[1] if found is not None and found[0]() is loader else None


def state_of(iterator):
    found = _iterators.get(id(iterator))
    return found[1] if found is not None and found[0]() is iterator else None


def counted(sampler, iterator):
    """A sampler that goes through its data in order began."""
    if not guard.off and type(iterator) is _RANGE:
        remember_size(sampler, length_hint(iterator))
    return iterator


def sized(sampler, count):
    """A random sampler told how many samples it draws."""
    if not guard.off and type(count) is int:
        remember_size(sampler, count)
    return count


_RANGE = type(iter(range(0)))


def remember_size(sampler, count):
    if len(_sized) > 1000:
        _sized.clear()
    _sized[id(sampler)] = count


def made(loader, nothing):
    if not guard.off:
        describe(loader)
    return nothing


@guard.quietly
def describe(loader):
    global _count
    if info_of(loader) is not None:
        return
    own = fields(loader)
    workers = own.get("num_workers") or 0
    info = Loader(_count, workers, alike(own), workers > 1 and is_iterable(own))
    for table in (_loaders, _iterators):
        for key in [key for key, entry in list(table.items()) if entry[0]() is None]:
            table.pop(key, None)
    _loaders[id(loader)] = weakref.ref(loader), info
    scope, place = "loader.%d" % _count, places.user_place(2)
    _count += 1
    sampler = own.get("sampler")
    values = {
        "num_workers": info.workers,
        "batch_size": own.get("batch_size") or fields(own.get("batch_sampler")).get("batch_size"),
        "pin_memory": own.get("pin_memory") is True,
        "persistent_workers": own.get("persistent_workers") is True,
        "prefetch_factor": own.get("prefetch_factor"),
        "drop_last": own.get("drop_last") is True,
        "shuffle": "Random" in raw.name_of(type(sampler)) or fields(sampler).get("shuffle") is True,
        "dataset": raw.name_of(type(own.get("dataset"))),
        "multiprocessing_context": start_method(own.get("_DataLoader__multiprocessing_context")),
    }
    if is_iterable(own):
        values["iterable"], values["sharded"] = True, sharding.is_shared(own.get("dataset"), own.get("worker_init_fn"))
    if values["multiprocessing_context"] is not None and not workers:
        values["can_spawn"] = spawning.can_spawn(own.get("dataset"), own.get("collate_fn"), own.get("worker_init_fn"))
    for key, value in values.items():
        if value is None or type(value) in (int, bool, str):
            clock.fact("loader." + key, value, scope, place)
    learn_length(info, own)
    clock.begin()


def learn_length(info, own):
    """Samples and batches per epoch, once torch's own sampler told them. Nobody asks the program's data for its length."""
    sampler, batches = own.get("sampler"), own.get("batch_sampler")
    kind = type(sampler)
    if info.length is not None or kind.__module__ not in ("torch.utils.data.sampler", "torch.utils.data.distributed"):
        return
    count, size = _sized.get(id(sampler), fields(sampler).get("num_samples")), own.get("batch_size")
    if type(count) is not int:
        return
    info.length = count
    clock.fact("loader.length", count, "loader.%d" % info.number)
    if type(size) is int and size > 0 and type(batches).__module__ == "torch.utils.data.sampler":
        info.batches = count // size if own.get("drop_last") else -(-count // size)


def start_method(context):
    """How workers begin, where that was said or is no fork. Asking for the program's own without `allow_none` would settle it."""
    if context is not None:
        return context.get_start_method() if type(context).__module__ == "multiprocessing.context" else None
    import multiprocessing

    default = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return default if default != "fork" else None


def alike(own):
    """Whether all batches but an epoch's last have the same number of samples."""
    from torch.utils.data import BatchSampler, IterableDataset, default_collate

    plain = type(own.get("batch_sampler")) is BatchSampler and own.get("collate_fn") is default_collate
    return plain and not raw.is_a(own.get("dataset"), IterableDataset)


def is_iterable(own):
    """Whether each worker iterates over the data set by itself."""
    from torch.utils.data import IterableDataset

    return raw.is_a(own.get("dataset"), IterableDataset)


def iterating(loader):
    if not guard.off and not coast.fetching and clock.mine():
        before = _before_iter(loader)
        if before is not None:
            _making.append((id(loader), before))


def iterated(loader, iterator):
    if _making and _making[-1][0] == id(loader) and clock.mine():
        _after_iter(_making.pop()[1], iterator)
        for function in on_iterator:
            function(loader, iterator)
    return iterator


def not_iterated(loader):
    if _making and _making[-1][0] == id(loader) and clock.mine():
        _after_iter(_making.pop()[1], None)


@guard.quietly
def _before_iter(loader):
    global starting
    # Workers that are forked now must time theirs.
    worker.time_one()
    info = info_of(loader)
    if info is None:
        describe(loader)
        info = info_of(loader)
    # The program may have changed it since.
    info.workers = fields(loader).get("num_workers") or 0
    evaluating = clock.base == clock.EVAL or not _is_grad_enabled()
    begin = clock.switch(clock.EVAL if evaluating else clock.DATA)
    starting = info.number + 1
    if info.workers:
        tell_children(FLATOUT_LOADER=str(starting))
    if info.latest is not None:
        _epoch(info.latest)
    # The loader, when its iterator was begun, batches so far, when the last one came, whether its epoch was told.
    return [info, begin, 0, 0, False]


def _epoch(state):
    """An epoch ended: the loader was exhausted, or (Lightning) all its batches were taken and a new iterator is made."""
    info = state[0]
    if not state[4] and state[2] and state[2] == info.batches and info.feeds:
        state[4] = True
        info.epoch += 1
        clock.event("epoch", number=info.epoch, duration_ms=(state[3] - state[1]) / 1e6)


@guard.quietly
def _after_iter(state, iterator):
    global starting
    starting = 0
    if state[0].workers:
        tell_children(FLATOUT_LOADER=None)
    clock.switch(clock.base)
    if iterator is not None:
        _iterators[id(iterator)] = weakref.ref(iterator), state
        state[0].latest = state


def ask(iterator):
    """A batch is asked for."""
    global _asked
    if guard.off or coast.fetching or clock.get_ident() != clock.thread:
        return
    try:
        state = state_of(iterator)
        evaluating = not _is_grad_enabled() or clock.base == clock.EVAL
        if evaluation.pending is not None and not evaluating:
            evaluating = evaluation.asked(state)
        begin = clock.switch(clock.EVAL if evaluating else clock.DATA)
        _asked = id(iterator), state, begin, evaluating
        coast.fetching = True
    except BaseException as error:
        if guard.foreign(error, "next"):
            raise


def taken(iterator):
    """What was asked for by this iterator, which has its answer now."""
    global _asked
    if _asked is None or _asked[0] != id(iterator):
        return None
    (_, state, begin, evaluating), _asked = _asked, None
    coast.fetching = False
    return state, begin, evaluating


def got(iterator, batch):
    """The batch is there."""
    asked = taken(iterator)
    if asked is not None and not guard.off:
        state, begin, evaluating = asked
        try:
            if state is not None and state[2] and state[0].feeds and not evaluating and not evaluation.active:
                _came_again(iterator, state, begin, batch)
            else:
                _first_or_other(iterator, state, begin, batch, evaluating)
            if on_got and not evaluating:
                for function in on_got:
                    function(batch)
        except BaseException as error:
            if guard.foreign(error, "next"):
                raise
    return batch


def miss(iterator):
    """No batch came."""
    asked = taken(iterator)
    if asked is not None:
        _ended(iterator, coast.is_end(), asked[2])


def number():
    """The loader whose batch is being made in this process, by its number plus one."""
    state = _asked[1] if _asked is not None else None
    return state[0].number + 1 if state is not None else 0


def _came_again(iterator, state, begin, batch):
    """The usual batch, of a loader known to feed the training."""
    global latest
    worker.time_one()
    samples = batch_size(batch)
    latest = id(iterator), state, samples
    took(state, begin, clock.batch_came(samples))
    look_into(state[0], batch)
    settled_batch()


def look_into(info, batch):
    """What the first batches contain."""
    if info.contents is not None:
        contents.look(info.contents, batch, "loader.%d" % info.number)
        if info.contents.batches >= contents.BATCHES:
            info.contents = None


@guard.quietly
def _landed(now):
    """This batch ended a stretch of coasting: what is not done for each of them is done for it."""
    worker.time_one()
    for function in clock.after_some_batches:
        function(now)
    settled_batch()


def settled_batch():
    for function in extension.on_batch:
        function()
    if clock.since >= clock.next_flush:
        clock.flush(clock.since)


def may_coast(primary):
    """After a plain step: the loop may be written down only, if all that happens in it is known."""
    if extension.on_batch or extension.first_samples or extension.repeated > 1 or evaluation.active or evaluation.pending is not None:
        return
    if latest is None:
        if not clock.words[W_BATCHES]:
            coast.begin(primary, 0, None, 0, None, None)
        return
    iterator, state, samples = latest
    info = state[0]
    if not info.alike:
        coast.begin(primary, iterator, state, 0, None, batch_size)
    elif info.length is not None and info.batches is not None:
        coast.begin(primary, iterator, state, samples, info.batches - 1 - state[2], None)
    else:
        coast.begin(primary, iterator, state, 0, None, batch_size)


def _first_or_other(iterator, state, begin, batch, evaluating):
    global latest
    latest = None
    worker.time_one()
    if evaluating:
        _evaluated(state)
    else:
        _came(iterator, state, batch)
    if state is not None:
        took(state, begin, state[3], evaluating)


def took(state, begin, end, evaluating=False):
    """Which loader feeds the steps, and how long it lets them wait."""
    state[2] += 1
    state[3] = end
    number = state[0].number + 1
    words = clock.words
    at = W_LOADERS + (number % LOADER_SLOTS) * LOADER_WORDS
    if words[at + L_NUMBER] != number:
        clock.claim_slot(at, number)
    words[at + (L_EVAL_BATCHES if evaluating else L_BATCHES)] += 1
    words[at + (L_EVAL_WAIT if evaluating else L_WAIT)] += end - begin


def _came(iterator, state, batch):
    if evaluation.active:
        evaluation.finish()
    clock.batch_came(batch_size(batch))
    if state is not None:
        state[3] = clock.since
        if not state[0].feeds:
            newly_fed.append(state[0])
            clock.attention = True
        if state[2] == 0:
            _first(iterator, state, batch)
        look_into(state[0], batch)
    settled_batch()


def _evaluated(state):
    evaluation.confirm()
    clock.eval_batch()
    if state is not None:
        state[3] = clock.switch(clock.EVAL)
        if state[2] == 0:
            _start_event(state)
    if clock.since >= clock.next_flush:
        clock.flush(clock.since)


def _first(iterator, state, batch):
    _start_event(state)
    loader = next((one for one, info in known() if info is state[0]), None)
    if loader is not None:
        learn_length(state[0], fields(loader))
    if not state[0].told_batch:
        state[0].told_batch = True
        from . import environment

        environment.describe_batch(batch, "loader.%d" % state[0].number)


def _start_event(state):
    duration = (perf_counter_ns() - state[1]) / 1e6
    clock.event("loader-start", loader=state[0].number, workers=state[0].workers, duration_ms=duration)


@guard.quietly
def _ended(iterator, exhausted, evaluating):
    """No batch came: the loader is exhausted, or it failed."""
    global latest
    latest = None
    clock.here()
    state = state_of(iterator)
    if not evaluating:
        clock.base, clock.resting, clock.attention = clock.OTHER, -1, True
        clock.switch(clock.OTHER)
        if exhausted and state is not None and state[2] and not state[4]:
            state[4] = True
            state[0].epoch += 1
            if state[0].batches is None and state[0].latest is state:
                state[0].batches = state[2]
            duration = (perf_counter_ns() - state[1]) / 1e6
            clock.event("epoch", number=state[0].epoch, duration_ms=duration)
    else:
        evaluation.loader_ended()


def program_ended():
    for _, info in known():
        if info.latest is not None:
            _epoch(info.latest)


def tell_children(**variables):
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def after_fork():
    global latest, _asked
    latest = _asked = None
    newly_fed.clear()
    _making.clear()
