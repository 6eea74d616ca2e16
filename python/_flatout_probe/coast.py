"""The cheap way through a loop that runs steadily: what happens is written down with its time, and reckoned up a quarter of a
second at once.

After a step's arithmetic every line of the probe comes out of memory that the arithmetic has swept, and costs several times what it
does in a loop of its own. So a steady step runs as few lines as can be, here, and the many lines that turn times into phases,
counts and histograms run over many steps in a row. Nothing is estimated: the sums are the same to the nanosecond.

Whatever else happens (an evaluation, a checkpoint, another loader, another optimizer) settles the account first, by
`clock.settle`. Neither an iterator nor an optimizer is held on to: they are known by their `id` while they live, and a new one
settles too.
"""

import sys
from itertools import repeat
from math import log2
from operator import add, mul, sub
from time import perf_counter_ns

from . import clock, guard
from .clock import BEGUN, COMPUTE, DATA, OTHER, SYNC, TRANSFER, W_STEP_HIST, log
from .ring import BUCKETS, L_BATCHES, L_NUMBER, L_WAIT, LOADER_SLOTS, LOADER_WORDS
from .ring import W_BATCHES, W_HIST, W_LIVE, W_LOADERS, W_PHASE, W_SAMPLES, W_SINCE, W_STEPS, W_SUMS

# So long until the account is settled; within a step that takes longer the reader sees the phase under way all the same. Settling
# costs a step some 0.1 ms, and the way back one more step as much: shorter than this it is no longer small beside steps of 2 ms.
LONGEST_NS = 250_000_000
# The next batch settles, since its step is the first that is looked at more closely; only where none comes for so long, a step does.
GRACE_NS = 100_000_000
# So many steps in a row must have been plain ones.
STEADY = 8
# A stretch in which the host waited for the device.
READ = bytes((BEGUN, SYNC))
# Fewer entries than this until a loader's last batch are not worth it.
FEWEST = 6

# A batch is being made in this process, for the iterator under way: whatever is asked for meanwhile is a part of that.
fetching = False
steady = 0
iterator = optimizer = 0
due = full = 0
stamp = log.append
words = clock.words
# The loader's state, samples in each of its batches, and where those differ, the samples of each that came.
_state = None
_samples = 0
_measure = None
_sizes = []


def begin(primary, asked, state, samples, left, measure):
    """From here on the loop of this optimizer and this iterator (0 without one) is only written down, but for the last batch of
    an epoch, which may be smaller: `left` come before it. `measure` tells a batch's samples where they differ."""
    global iterator, optimizer, due, full, words, _state, _samples, _measure
    full = 2 * left if left is not None else 1 << 62
    if full < FEWEST:
        return
    iterator, optimizer, _state, _samples, _measure = asked, primary, state, samples, measure
    words = clock.words
    due = min(clock.since + LONGEST_NS, clock.next_flush)
    clock.coasting = True


def settle():
    """Reckons up what was written down, and ends the coasting; once is enough."""
    global iterator, optimizer, _state, _measure
    if not clock.coasting:
        return
    iterator = optimizer = 0
    clock.coasting = False
    words[W_LIVE] = 0
    try:
        if not guard.off:
            reckon()
            for function in clock.settlers:
                function()
    except BaseException as error:
        if guard.foreign(error, "coast"):
            raise
    log.clear()
    _sizes.clear()
    _state = _measure = None


clock.settle = settle


def reckon():
    counters = words
    sums = counters[clock.SUMS].tolist()
    done = alike(counters, sums)
    phase, since, base = clock.phase, clock.since, clock.base
    fed, again, resting, pending = clock.fed, clock.again, clock.resting, clock.batch_samples
    steps = batches = samples = wait = begun = asked = came = 0
    for entry in log[done:]:
        now, kind = entry >> 3, entry & 7
        if kind == BEGUN:
            begun = max(now, since)
            sums[phase] += begun - since
            continue
        if kind == OTHER:
            if resting >= 0:
                # As `clock.resume`: what looked like the program's own code was this step's.
                sums[phase] += now - since
                since = now
                own = sums[OTHER] - resting
                sums[OTHER] -= own
                sums[COMPUTE] += own
                clock.last_sums[OTHER] = min(clock.last_sums[OTHER], sums[OTHER])
                phase, base, resting, again = COMPUTE, COMPUTE, -1, True
            sums[phase] += now - since
            steps += 1
            samples += pending
            pending = 0
            clock.count_step(counters, sums[:], now)
            if fed or again:
                fed = again = False
                phase, base, resting = OTHER, OTHER, sums[OTHER]
        elif kind == DATA:
            sums[phase] += now - since
            phase, asked = DATA, now
        elif kind == COMPUTE:
            sums[phase] += now - since
            phase, base, came = COMPUTE, COMPUTE, now
            wait += now - asked
            pending += took(batches)
            batches += 1
            fed, resting, again = True, -1, False
        else:
            sums[kind] += max(now - begun, 0)
        since = max(since, now)
    clock.phase, clock.since, clock.base = phase, since, base
    clock.fed, clock.again, clock.resting, clock.batch_samples = fed, again, resting, pending
    for index, spent in enumerate(sums):
        counters[W_SUMS + index] = spent
    counters[W_PHASE], counters[W_SINCE] = phase, since
    counters[W_STEPS] += steps
    counters[W_SAMPLES] += samples
    if batches:
        count_batches(counters, batches, wait, came)


def took(number):
    """Samples of a batch of this stretch."""
    return _sizes[number] if _measure else _samples


def count_batches(counters, batches, wait, came):
    counters[W_BATCHES] += batches
    _state[2] += batches
    _state[3] = came
    del _sizes[:batches]
    number = _state[0].number + 1
    at = W_LOADERS + (number % LOADER_SLOTS) * LOADER_WORDS
    if counters[at + L_NUMBER] != number:
        clock.claim_slot(at, number)
    counters[at + L_BATCHES] += batches
    counters[at + L_WAIT] += wait


def alike(counters, sums):
    """Steps that are all of one kind, one batch each, reckoned up column by column; gives how many entries those are. Reads of the
    device now and then, as of a loss that is told every ten steps, are taken out first and put in afterwards."""
    entries, kinds, reads = log, bytes([entry & 7 for entry in log]), ()
    width, count = run(kinds)
    if not count and READ in kinds:
        entries, kinds, reads = without_reads(kinds)
        width, count = run(kinds)
    resting = clock.phase == OTHER and clock.resting >= 0 and clock.last_step == clock.since and not clock.batch_samples
    if not count or not resting:
        return 0
    pattern, whole = kinds[:width], count * width
    times = [entry >> 3 for entry in entries[:whole]]
    ends = times[width - 1 :: width]
    before, phase, spent, phases = [clock.since] + ends[:-1], OTHER, {}, []
    for place, kind in enumerate(pattern):
        column = times[place::width]
        phases.append(phase)
        # The time up to an entry is the phase's under way, but for a stretch that ends with it.
        whose = kind if kind in (TRANSFER, SYNC) else phase
        taken = list(map(sub, column, before))
        spent[whose] = list(map(add, spent[whose], taken)) if whose in spent else taken
        before = column
        if kind == DATA or kind == COMPUTE:
            phase = kind
    reads = [(at, taken) for at, taken in reads if at < whole]
    for at, taken in reads:
        step, place = divmod(at, width)
        spent[phases[place]][step] -= taken
        spent.setdefault(SYNC, [0] * count)[step] += taken
    if any(min(taken) < 0 for taken in spent.values()):
        # Stretches that lie within each other.
        return 0
    for whose, taken in spent.items():
        sums[whose] += sum(taken)
        count_all(counters, W_HIST + whose * BUCKETS, taken)
    count_all(counters, W_STEP_HIST, list(map(sub, ends, [clock.since] + ends[:-1])))
    counters[W_STEPS] += count
    counters[W_SAMPLES] += sum(_sizes[:count]) if _measure else _samples * count
    clock.last_sums, clock.last_step, clock.since, clock.resting = sums[:], ends[-1], ends[-1], sums[OTHER]
    count_batches(counters, count, sum(spent[DATA]), times[-width + pattern.index(COMPUTE)])
    return whole + 2 * len(reads)


def run(kinds):
    """Entries of a step, and how many steps of one batch each follow one another that are of one kind; none where not all are."""
    width = kinds.find(OTHER) + 1
    count, pattern = len(kinds) // width if width else 0, kinds[:width]
    plain = count > 1 and pattern[0] == DATA and pattern.count(COMPUTE) == 1 and kinds[: count * width] == pattern * count
    return width, count if plain else 0


def without_reads(kinds):
    """What was written down but for reads of the device, its kinds, and those: the place of the entry each came before, and its time."""
    entries, reads, done, at = [], [], 0, kinds.find(READ)
    while at >= 0:
        entries += log[done:at]
        reads.append((len(entries), (log[at + 1] >> 3) - (log[at] >> 3)))
        done, at = at + 2, kinds.find(READ, at + 2)
    return entries + log[done:], kinds.replace(READ, b""), reads


def count_all(counters, at, taken):
    """As `clock.count_step` does one by one: eight buckets a doubling."""
    found = {}
    for bucket in map(int, map(mul, map(log2, filter(None, taken)), repeat(8))):
        found[bucket] = found.get(bucket, 0) + 1
    for bucket, count in found.items():
        counters[at + min(bucket, BUCKETS - 1)] += count


def hooks_of_next(ask, got, miss, landed, ended):
    """The hooks of `__next__` of a loader's iterator: what happens is written down while it coasts, else they are `ask`, `got` and
    `miss`. `landed` is called after the batch that ends the coasting, `ended` when no batch came."""

    def enter(self):
        global fetching
        if id(self) != iterator:
            return ask(self)
        words[W_LIVE] = entry = perf_counter_ns() * 8
        stamp(entry)
        fetching = True

    def leave(self, batch):
        global fetching
        if id(self) != iterator:
            return got(self, batch)
        fetching = False
        now = perf_counter_ns()
        words[W_LIVE] = entry = now * 8 + COMPUTE
        stamp(entry)
        if _measure is not None:
            count_samples(batch)
        if now >= due or len(log) >= full:
            settle()
            landed(now)
        return batch

    def fail(self):
        global fetching
        if id(self) != iterator:
            return miss(self)
        fetching = False
        settle()
        ended(self, is_end(), False)

    return enter, leave, fail


def is_end():
    """Whether the error that passes is the end of an iteration."""
    return sys.exc_info()[0] is StopIteration


@guard.quietly
def count_samples(batch):
    _sizes.append(_measure(batch))


def number():
    """The loader whose batch is being made, by its number plus one."""
    return _state[0].number + 1 if _state is not None else 0


def hook_of_step(slow):
    """The hook after an optimizer's step."""

    def after(self, result):
        if id(self) != optimizer:
            slow(self)
            return result
        now = perf_counter_ns()
        entry = now * 8 + OTHER
        stamp(entry)
        if iterator:
            words[W_LIVE] = entry
        if now >= due and (not iterator or now >= due + GRACE_NS):
            settle()
        return result

    return after


def after_fork():
    global fetching, steady, iterator, optimizer, _state, _measure
    fetching, steady, iterator, optimizer, _state, _measure = False, 0, 0, 0, None, None
    _sizes.clear()
