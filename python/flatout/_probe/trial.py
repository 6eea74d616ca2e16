"""One trial of `flatout tune`: some steps to warm up, then steps timed over the whole loop, then the program is stopped.

Nothing is read from the device in between: the losses stay there until the end. What the program saves goes to the trial's own
folder, so that a trial never overwrites a checkpoint.
"""

import json
import os
from time import perf_counter_ns

from . import clock, guard
from .ring import W_SAMPLES, W_STEPS

LOSSES = 4096
_torch = None
_plan = None
_begun = 0
_base = 0
_times = []
_samples = []
_losses = []
_first = 0
_written = False


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
        _torch = torch
        follow_losses(torch.Tensor)
        from .patches import checkpoint

        checkpoint.elsewhere = _plan["saved"]


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
    from .patches import loader

    queued = [(one.num_workers or 0) * (one.prefetch_factor or 0) for one in list(loader._known)]
    return max(_plan["warm_up"], min(max(queued, default=0) + 2, 40))


def stepped(now):
    global _begun, _base, _first
    if _written:
        return
    steps = clock.words[W_STEPS]
    _first = _first or now
    if not _begun:
        slow = steps >= 3 and (now - _first) / 1e9 > _plan["longest"] / 2
        if steps >= warm_up() or slow:
            wait()
            _begun, _base = perf_counter_ns(), clock.words[W_SAMPLES]
        return
    _times.append(now)
    _samples.append(clock.words[W_SAMPLES] - _base)
    count, seconds = len(_times), (now - _begun) / 1e9
    alone = int(os.environ.get("WORLD_SIZE") or 1) == 1
    if count >= _plan["steps"] and (seconds >= _plan["seconds"] or not alone):
        finish(False)
    elif alone and count >= 5 and seconds >= _plan["longest"]:
        finish(False)
    elif alone and count >= 8 and seconds >= 1.0 and _plan.get("beat"):
        rate = (_samples[-1] or count) / seconds
        if rate < _plan["beat"]:
            finish(True)


def wait():
    if _torch is not None and _torch.cuda.is_initialized():
        _torch.cuda.synchronize()


def finish(cut):
    wait()
    _times[-1] = perf_counter_ns()
    write(cut, False)
    # The probe's own way to stop: it looks right after this.
    clock.stop_after = clock.words[W_STEPS]


@guard.quietly
def program_ended():
    """The program came to its end before the trial did."""
    if not _written and clock.words[W_STEPS]:
        write(False, True)


def write(cut, ended):
    global _written
    _written = True
    values = [loss.float() for _, loss in _losses]
    losses = _torch.stack(values).cpu().tolist() if values else []
    world = int(os.environ.get("WORLD_SIZE") or 1)
    told = {
        "schema": 1,
        "steps": clock.words[W_STEPS],
        "begin_ns": _begun,
        "times_ns": _times,
        "samples": _samples,
        "losses": [[at, loss if loss == loss and abs(loss) != float("inf") else None] for (at, _), loss in zip(_losses, losses)],
        "cut": cut,
        "ended": ended,
        "world": world,
        "memory_bytes": memory(),
    }
    name = os.path.join(_plan["folder"], "trial-%s.json" % (os.environ.get("RANK") or "0"))
    with open(name + ".new", "w") as file:
        json.dump(told, file)
    os.rename(name + ".new", name)


def memory():
    if _torch is not None and _torch.cuda.is_initialized():
        return _torch.cuda.max_memory_reserved()
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
