"""Where the training thread's wall time goes. The phases partition it: each moment belongs to exactly one, so they add up.

Everything here runs on the training thread only; `mine()` asks. Counters are added to in place in the ring's words, so that
a killed program loses nothing and nobody has to send anything.
"""

import atexit
import os
import sys
from math import log2
from threading import get_ident, main_thread
from time import perf_counter_ns

from . import guard
from .ring import (
    BUCKETS,
    L_NUMBER,
    LOADER_WORDS,
    STEP_HIST,
    W_BATCHES,
    W_CLOSED,
    W_EVAL_BATCHES,
    W_HIST,
    W_PHASE,
    W_SAMPLES,
    W_SINCE,
    W_STEPS,
    W_SUMS,
    W_WITHIN,
    Ring,
)

DATA, TRANSFER, COMPUTE, SYNC, EVAL, CHECKPOINT, OTHER = range(7)
FLUSH_NS = 1_000_000_000
SUMS = slice(W_SUMS, W_SUMS + 7)
W_STEP_HIST = W_HIST + STEP_HIST * BUCKETS


def fresh():
    """Counters of a process in which nothing has happened yet: none of its time is waiting for data."""
    made = Ring()
    made.words[W_PHASE] = OTHER
    return made


ring = fresh()
words = ring.words
phase = OTHER
since = perf_counter_ns()
thread = main_thread().ident
# What the time belongs to when no data, sync, transfer or checkpoint is under way.
base = OTHER
# What `W_WITHIN` is when no read or copy is under way: 0, or that of a presumed evaluation.
within = 0
last_sums = [0] * 7
last_step = 0
next_flush = 0
batch_samples = 0
# A batch came since the last step; the time in `other` when the step ended that used it up, else -1; and whether a further step
# came before the next batch.
fed = False
resting = -1
again = False
# Something changed that the next step must look at: an evaluation began or ended, a loader fed for the first time. Between two
# steps of a plain loop nothing does, and what is not looked at costs nothing: after a step's arithmetic every line of the probe
# comes out of cold memory.
attention = True
# The loop runs steadily, and what happens in it is only written down (see coast.py): the words and everything here are as of the
# last reckoning. `settle` makes them current, and ends that; `here()` asks for the phase.
coasting = False
settle = None
log = []
# Called when it ends.
settlers = []
# In the log: the stretch that ends with the next entry began here.
BEGUN = 7
stop_after = int(os.environ.get("FLATOUT_STEPS") or 0)
# Called once a second and at the end: each sends what it gathered since.
flushers = []
# Called at the program's orderly end, before the last flush.
enders = []
# Called after every step, with the time.
after_step = []
# The same for some steps a second and the batches before them: what only samples needs no more.
after_some_steps = []
after_some_batches = []
folder = os.environ.get("FLATOUT_RING")
_registered = []


def mine():
    return get_ident() == thread


def here():
    """The phase under way."""
    if coasting:
        settle()
    return phase


def switch(new):
    """Ends the phase under way, begins another, and gives the time."""
    global phase, since
    if coasting:
        settle()
    now = perf_counter_ns()
    words[W_SUMS + phase] += now - since
    words[W_PHASE] = phase = new
    words[W_SINCE] = since = now
    return now


def span(kind, begin, end):
    """Charges a stretch that just ended to a phase; what lies before it stays with the phase under way."""
    global since
    if coasting:
        # Written down like everything else.
        log.extend((begin * 8 + BEGUN, end * 8 + kind))
        return
    if phase == EVAL or phase == CHECKPOINT:
        return
    if begin > since:
        words[W_SUMS + phase] += begin - since
    else:
        begin = since
    words[W_SUMS + kind] += end - begin
    words[W_SINCE] = since = end


def presume(new):
    """Samples belong to this phase until it is known whether the time does; None ends it."""
    global within
    within = 0 if new is None else new + 1
    words[W_WITHIN] = within


def batch_came(samples):
    """A batch is there; gives the time."""
    global batch_samples, base, fed, resting, again, phase, since
    if coasting:
        settle()
    counters = words
    now = perf_counter_ns()
    counters[W_SUMS + phase] += now - since
    counters[W_PHASE] = phase = base = COMPUTE
    counters[W_SINCE] = since = now
    counters[W_BATCHES] += 1
    batch_samples += samples
    fed, resting, again = True, -1, False
    if after_some_batches:
        for function in after_some_batches:
            function(now)
    return now


def step_ended():
    """An optimizer step ended."""
    global since, batch_samples, base, phase, fed, again, resting
    if coasting:
        settle()
    if base != COMPUTE:
        base = COMPUTE
        if phase == OTHER:
            switch(COMPUTE)
    now = perf_counter_ns()
    counters = words
    counters[W_SUMS + phase] += now - since
    counters[W_SINCE] = since = now
    totals = counters[SUMS].tolist()
    count_step(counters, totals, now)
    steps = counters[W_STEPS] + 1
    counters[W_STEPS] = steps
    if batch_samples:
        counters[W_SAMPLES] += batch_samples
        batch_samples = 0
    for function in after_step:
        function(now)
    for function in after_some_steps:
        function(now)
    if fed or again:
        # As `rest`.
        fed = again = False
        if phase == COMPUTE:
            counters[W_PHASE] = phase = base = OTHER
            resting = totals[OTHER]
    if now >= next_flush:
        flush(now)
    if stop_after and steps >= stop_after:
        stop_program(steps)


def count_step(counters, totals, now):
    """A step's time in each phase goes into the histograms, and its whole time."""
    global last_step, last_sums
    if last_step:
        at = W_HIST
        for total, before in zip(totals, last_sums):
            # Most phases did not grow. A step of three days would be counted in its neighbour's first bucket.
            if total > before:
                counters[at + int(log2(total - before) * 8)] += 1
            at += BUCKETS
        if now > last_step:
            counters[W_STEP_HIST + min(int(log2(now - last_step) * 8), BUCKETS - 1)] += 1
    last_sums, last_step = totals, now


def no_measure():
    """The time to the next step says nothing."""
    global last_step
    last_step = 0


def rest():
    """The step has used its batch up: until the next one comes, or another step, the program's own code runs."""
    global fed, again, resting, base, phase
    fed = again = False
    if phase == COMPUTE:
        words[W_PHASE] = phase = base = OTHER
        resting = words[W_SUMS + OTHER]


def resume():
    """Another step comes before the next batch: what looked like the program's own code was its forward and backward."""
    global resting, again, base
    before, resting, again = resting, -1, True
    base = COMPUTE
    if phase == OTHER:
        switch(COMPUTE)
    own = words[W_SUMS + OTHER] - before
    if own > 0:
        words[W_SUMS + OTHER] -= own
        words[W_SUMS + COMPUTE] += own
        last_sums[OTHER] = min(last_sums[OTHER], words[W_SUMS + OTHER])


def stop_program(steps):
    """The steps asked for are done. SystemExit unwinds the program as its own `sys.exit(0)` would; one that catches
    even that is ended the hard way a little later."""
    flush(perf_counter_ns(), last=True)
    if steps >= stop_after + 3:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    raise SystemExit(0)


def move(before, target):
    """Gives the time since the snapshot `before` to another phase, once it is known what it was."""
    switch(here())
    moved = 0
    for index in range(7):
        if index != target and index != CHECKPOINT:
            spent = words[W_SUMS + index] - before[index]
            if spent > 0:
                words[W_SUMS + index] -= spent
                last_sums[index] = min(last_sums[index], words[W_SUMS + index])
                moved += spent
    words[W_SUMS + target] += moved


def sums():
    switch(here())
    return list(words[W_SUMS : W_SUMS + 7])


def eval_batch():
    words[W_EVAL_BATCHES] += 1


def claim_slot(at, number):
    """A loader takes a slot over that another one used: what that one counted is not its own. Nobody's while it is emptied."""
    words[at + L_NUMBER] = 0
    for index in range(LOADER_WORDS):
        words[at + index] = 0
    words[at + L_NUMBER] = number


def flush(now, last=False):
    global next_flush
    if coasting:
        settle()
    next_flush = now + FLUSH_NS
    begin()
    for function in flushers:
        function(last)
    ring.drain()


def begin():
    """Makes the ring's file, the first time there is something to tell."""
    global words
    if ring.is_open or guard.off or not folder:
        return
    try:
        ring.open(folder, hello())
    except Exception as error:
        guard.failed(error, "ring")
        return
    words = ring.words
    if not _registered:
        _registered.append(True)
        # Also for a program without torch, whose steps come from `flatout.step()`.
        atexit.register(ended)


def hello():
    environment = os.environ.get

    def number(name):
        value = environment(name)
        return int(value) if value and value.isdigit() else None

    return {
        "hello": {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "rank": number("RANK"),
            "world": number("WORLD_SIZE"),
            "local": number("LOCAL_WORLD_SIZE"),
            "local_rank": number("LOCAL_RANK"),
            "worker": in_worker(),
            "python": sys.version.split()[0],
        }
    }


def in_worker():
    """Whether this process is a DataLoader's worker."""
    module = sys.modules.get("torch.utils.data._utils.worker")
    return module is not None and module.get_worker_info() is not None


def note(source, text):
    event("note", source=source, text=text)


def event(kind, **fields):
    fields["kind"] = kind
    ring.emit({"at": perf_counter_ns(), "event": {key: value for key, value in fields.items() if value is not None}})


def fact(key, value, scope=None, place=None):
    ring.emit({"at": perf_counter_ns(), "fact": {"key": key, "value": value, "scope": scope, "place": place}})


def ended():
    """At the program's orderly end."""
    if guard.off or not ring.is_open:
        return
    try:
        if mine():
            for function in enders:
                function()
            switch(OTHER)
        flush(perf_counter_ns(), last=True)
        words[W_CLOSED] = 1
    except Exception:
        pass


def stop():
    """The probe is off: time no longer belongs to a phase."""
    words[W_CLOSED] = 1


def after_fork():
    """In a forked child: its own counters, its own file, once it has something to tell."""
    global ring, words, phase, since, thread, base, last_step, next_flush, batch_samples, fed, resting, again, attention
    global coasting, within
    coasting, within = False, 0
    log.clear()
    ring = fresh()
    words = ring.words
    phase = base = OTHER
    since = perf_counter_ns()
    thread = get_ident()
    last_sums[:] = [0] * 7
    last_step = next_flush = batch_samples = 0
    fed, resting, again, attention = False, -1, False, True


def rebind_thread():
    """Steps run on another thread than the main one: that is the training thread then."""
    global thread, since, phase
    if words[W_STEPS] == 0:
        thread = get_ident()
        since, phase = perf_counter_ns(), base
