"""One trial of `flatout tune`: some steps to warm up, then steps timed over the whole loop until their rate is known well enough,
then the program is stopped. Where it is asked for, some steps of other sizes come in between (`sizes`), for what larger batches would
take, some fed by other workers (`feeding`; on a GPU batches alone, `supply`), and some with one setting changed (`variants`).

Nothing is read from the device in between: the losses stay there until the end. Checkpoints go to the trial's own folder (`overlay`).
"""

import json
import os
from time import perf_counter_ns

from _flatout_probe import clock, guard
from _flatout_probe.ring import W_SAMPLES, W_STEPS, W_SUMS

from .. import malloc
from . import overlay

LOSSES = 4096
# Steps: those of batches that were made beforehand take little time.
LONGEST_WARM_UP = 100
# Fewer measured steps tell nothing.
LEAST = 5
# The rate's interval is of so many pieces; the factor is Student's for 95% and so many.
PIECES, STUDENT = 8, 2.365
_torch = None
_plan = None
_begun = 0
_base = 0
# Steps of the warm-up, with the samples by then: all there is of a program that ends too soon, and of what went before the first of them.
_early = []
_before = None
_times = []
_samples = []
_losses = []
_first = 0
_written = False
_sums = _usage = None
_longest_ns = 0
_look_again = 0
_more = None
_stages = []
_result = None


def install(torch=None):
    """With torch, as soon as it is there; without it, for a program that tells its steps itself."""
    global _torch, _plan
    text = os.environ.get("FLATOUT_TRIAL")
    if not text:
        return
    if _plan is None:
        _plan = json.loads(text)
        clock.after_step.append(stepped)
        clock.enders.append(program_ended)
    if torch is not None and _torch is None:
        from . import batches, saved

        _torch = torch
        batches.install()
        saved.install()
        follow_losses(torch.Tensor)


def follow_losses(cls):
    backward = cls.backward
    compiling = guard.compiling

    def patched(self, *args, **kwargs):
        if not compiling() and not guard.off and len(_losses) < LOSSES and self.dim() == 0 and clock.mine():
            _losses.append((clock.words[W_SAMPLES] + clock.batch_samples, self.detach()))
        return backward(self, *args, **kwargs)

    cls.backward = patched


def warm_up():
    """Steps before the clock starts: at least until the batches that were prepared meanwhile are used up."""
    if _torch is None:
        return _plan["warm_up"]
    from _flatout_probe.patches import loader

    queued = [(one.num_workers or 0) * (one.prefetch_factor or 0) for one, _ in loader.known()]
    return max(_plan["warm_up"], min(max(queued, default=0) + 2, LONGEST_WARM_UP))


def stepped(now):
    global _begun, _base, _first, _before, _sums, _usage, _longest_ns
    overlay.begun = True
    if _written:
        return
    if _more is not None:
        if _more.stepped(now):
            go_on()
        return
    steps = clock.words[W_STEPS]
    if not _first:
        _first, _before = now, (spent_ns(), malloc.usage())
    if not _begun:
        if len(_early) < LOSSES:
            _early.append((now, clock.words[W_SAMPLES]))
        slow = steps >= 3 and (now - _first) / 1e9 > _plan["longest"] / 2
        if steps >= warm_up() or slow:
            wait()
            _begun, _base, _sums, _usage = perf_counter_ns(), clock.words[W_SAMPLES], spent_ns(), malloc.usage()
        return
    _longest_ns = max(_longest_ns, now - (_times[-1] if _times else _begun))
    _times.append(now)
    _samples.append(clock.words[W_SAMPLES] - _base)
    count, seconds = len(_times), (now - _begun) / 1e9
    alone = int(os.environ.get("WORLD_SIZE") or 1) == 1
    if count >= _plan["steps"] and (not alone or seconds >= _plan["seconds"] and settled(now, seconds)):
        finish(False)
    elif alone and count >= 5 and seconds >= _plan["longest"]:
        finish(False)
    elif alone and count >= 8 and seconds >= 1.0 and _plan.get("beat"):
        # Without its longest step: one pause (an evaluation, a search for algorithms) makes no loser.
        rate = (_samples[-1] or count) * (count - 1) / count / (seconds - _longest_ns / 1e9)
        if rate < _plan["beat"]:
            finish(True)


def spent_ns():
    """Waiting for batches; evaluating and saving."""
    sums = clock.words[W_SUMS : W_SUMS + 7]
    return sums[clock.DATA], sums[clock.EVAL] + sums[clock.CHECKPOINT]


def settled(now, seconds):
    """The rate is known well enough, or no more time may be spent on it."""
    global _look_again
    if seconds >= _plan["settle"]:
        return True
    if now < _look_again:
        return False
    _look_again = now + int(0.2 * seconds * 1e9)
    mean, half = rate()
    apart = _plan.get("best") and (mean - half > _plan["best"][1] or mean + half < _plan["best"][0])
    return half <= mean * _plan["noise"] * (3 if apart else 1)


def rate():
    """The rate and half its interval, over pieces of the steps so far."""
    count, rates, before = len(_times), [], (_begun, 0)
    for piece in range(1, PIECES + 1):
        at = piece * count // PIECES - 1
        done = _samples[at] or at + 1
        rates.append((done - before[1]) * 1e9 / max(_times[at] - before[0], 1))
        before = (_times[at], done)
    mean = sum(rates) / PIECES
    spread = sum((one - mean) ** 2 for one in rates) / (PIECES - 1)
    return mean, STUDENT * (spread / PIECES) ** 0.5


def wait():
    if _torch is not None and _torch.cuda.is_initialized():
        _torch.cuda.synchronize()


def finish(cut):
    global _result
    wait()
    _times[-1] = perf_counter_ns()
    _result = told(cut, False)
    # An epoch's last batch may be smaller.
    samples = sorted(later - sooner for later, sooner in zip(_samples, [0] + _samples))[len(_samples) // 2]
    if _plan.get("sizes") and not cut and _torch is not None and _result["world"] == 1 and samples and promising():
        _stages.extend(stages(samples))
    go_on()


def stages(samples):
    """What more a trial may tell, in this order; each is made when its turn comes."""
    from . import feeding, sizes, supply, variants

    wishes, freeze = _plan.get("workers") or [], _plan.get("freeze", False)
    yield lambda: sizes.Sizes(_torch, _plan["sizes"], samples, _result)
    if _torch.cuda.is_initialized():
        # The most first, then half of them: those are the ones in question.
        yield lambda: supply.Supply(_torch, sorted((count for count, _ in wishes), reverse=True), samples, freeze, _result)
    else:
        yield lambda: feeding.Feeding(_torch, wishes, samples, freeze, _result)
    if _plan.get("variants"):
        yield lambda: variants.Variants(_torch, _plan["variants"], _result, lambda: save(".early"))


def promising():
    """Nothing more is to be learnt from settings that do not look better than the best so far."""
    return not _plan.get("best") or rate()[0] > sum(_plan["best"]) / 2


def go_on():
    """The next stage that has something to do. What was measured is safe, whatever its steps do to the program."""
    global _more
    while _stages:
        save(".early")
        _more = _stages.pop(0)()
        if not _more.done:
            return
    end()


def end():
    write()
    # The probe's own way to stop: it looks right after this.
    clock.stop_after = clock.words[W_STEPS]


@guard.quietly
def program_ended():
    """The program came to its end before the trial did."""
    global _result
    if not _written and clock.words[W_STEPS]:
        if _result is None and len(_times) < LEAST and len(_early) + len(_times) > LEAST:
            count_warm_up()
        _result = _result or told(False, True)
        write()


def count_warm_up():
    """A program of a few steps: all of them but the first are measured."""
    global _begun, _base, _sums, _usage
    steps = _early + [(at, _base + samples) for at, samples in zip(_times, _samples)]
    (_begun, _base), (_sums, _usage) = steps[0], _before
    _times[:] = [at for at, _ in steps[1:]]
    _samples[:] = [samples - _base for _, samples in steps[1:]]


def told(cut, ended):
    values = [loss.float() for _, loss in _losses]
    losses = _torch.stack(values).cpu().tolist() if values else []
    return {
        "schema": 1,
        "steps": clock.words[W_STEPS],
        "begin_ns": _begun,
        "times_ns": _times,
        "samples": _samples,
        "data_ns": spent_ns()[0] - _sums[0] if _begun else None,
        "on_pages": malloc.part_on_pages(_usage) if _begun else None,
        "aside_ns": spent_ns()[1] - _sums[1] if _begun else None,
        "losses": [[at, loss if loss == loss and abs(loss) != float("inf") else None] for (at, _), loss in zip(_losses, losses)],
        "cut": cut,
        "ended": ended,
        "world": int(os.environ.get("WORLD_SIZE") or 1),
        "memory_bytes": memory(),
    }


def write():
    global _written
    _written = True
    save("")


def save(kind):
    name = os.path.join(_plan["folder"], "trial-%s%s.json" % (os.environ.get("RANK") or "0", kind))
    with open(name + ".new", "w") as file:
        json.dump(_result, file)
    os.rename(name + ".new", name)


def memory():
    if _torch is not None and _torch.cuda.is_initialized():
        return _torch.cuda.max_memory_reserved()
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
