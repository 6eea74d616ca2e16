"""Collectives of `torch.distributed`, and the gradient synchronization of DistributedDataParallel: when this rank arrived at each one
and when it left. `flatout run` compares the arrivals of all ranks: a rank waits from its own arrival to the last one, and transfers
for the rest.

Collectives are numbered in the order in which the training thread calls them, which is the same on every rank. Only those of the
default group count: of another group some ranks may not be members.

DDP reduces its buckets in C++ while backward runs, so Python sees none of it. But its reducer keeps the time at which each gradient was
ready: the last of them is the arrival, and the end of `backward()` is the end. Nothing is registered with the reducer.
"""

import weakref
from sys import _getframe
from threading import get_ident
from time import perf_counter_ns

from .. import clock, guard, places, raw
from ..ring import SLOT_WORDS, SLOTS, W_COLLECTIVE_NS, W_COLLECTIVES, W_IN_COLLECTIVE, W_IN_SINCE, W_SLOTS
from ..weave import done, weave
from . import backward

# The functions that start a collective, with the name of a tensor they take; the others of the module call these.
FUNCTIONS = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "gather": "tensor",
    "scatter": "tensor",
    "reduce_scatter": "output",
    "reduce_scatter_tensor": "output",
    "all_to_all": "output_tensor_list",
    "all_to_all_single": "output",
    "barrier": "device_ids",
}
GRADIENTS, BUFFERS = "ddp-gradients", "ddp-buffers"
# More than this many lines with collectives are not told apart.
MOST_SITES = 1000

_module = _world = None
_woven = False
# Lines with collectives by operation and instruction: the number, and the code, so that its id stays its own.
_sites = {}
# Collectives under way on the training thread: the site, when it began, whether it is of the default group.
_open = []
_number = 0
# Models whose next backward reduces gradients: when the reducer began to count.
_prepared = {}
# What each reducer's times added up to after the last backward: other times mean that it reduced again.
_seen = {}
_latest = None
_told = set()


def install(torch):
    global _module
    import sys

    _module = sys.modules.get("torch.distributed.distributed_c10d")
    function = getattr(_module, "init_process_group", None)
    if function is not None:
        weave(function, (), leave=joined)


@guard.quietly
def follow():
    """The first process group is there: from now on there are collectives."""
    global _woven
    if _woven:
        return
    _woven = True
    for name, tensor in FUNCTIONS.items():
        function = getattr(_module, name, None)
        if function is not None:
            weave(function, (tensor, "group", "async_op"), enter=entering(name), leave=left, fail=failed)
    from torch.nn.parallel import DistributedDataParallel

    forward = getattr(DistributedDataParallel, "_post_forward", None)
    if forward is not None:
        weave(forward, enter=forwarded, argument_of="prepare_for_backward", argument=preparing)
    buffers = getattr(DistributedDataParallel, "_distributed_broadcast_coalesced", None)
    if buffers is not None:
        weave(buffers, ("self", "tensors"), enter=entering_buffers, leave=left, fail=failed)
    done()


def joined(result):
    follow()
    look()
    return result


@guard.quietly
def look():
    """Which rank this is of how many."""
    global _world
    group = _module.GroupMember.WORLD
    if group is None:
        return
    _world = group
    rank, world = _module.get_rank(), _module.get_world_size()
    clock.fact("parallel.rank", rank)
    clock.fact("parallel.world_size", world)
    clock.fact("parallel.backend", str(_module.get_backend()))
    clock.ring.emit({"at": perf_counter_ns(), "group": {"rank": rank, "world": world}})
    # A program that hangs before its first step must be seen too.
    clock.begin()


def entering(operation):
    def enter(tensor, group, async_op):
        if not guard.off and get_ident() == clock.thread:
            begin(operation, tensor, group, async_op, _getframe(1))

    return enter


def entering_buffers(model, tensors):
    if not guard.off and get_ident() == clock.thread:
        group = raw.fields(model).get("process_group")
        begin(BUFFERS, tensors, group, False, _getframe(1))


@guard.quietly
def begin(operation, tensor, group, is_async, frame):
    frame = users(frame)
    key = operation, frame and id(frame.f_code), frame and frame.f_lasti, is_async
    site = _sites.get(key)
    if site is None:
        site = new_site(key, operation, bool(is_async), on_device(tensor), frame)
    now = perf_counter_ns()
    _open.append((site[0], now, group is None or group is _world))
    if len(_open) == 1:
        clock.words[W_IN_SINCE], clock.words[W_IN_COLLECTIVE] = now, site[0]


def users(frame):
    """The user's frame; else the nearest outside torch."""
    nearest = frame = places.outside_torch(frame)
    while frame is not None and places.kind_of(frame.f_code) != places.USER:
        frame = frame.f_back
    return frame or nearest


def on_device(tensor):
    """Whether the host only launches it."""
    with raw.without_functions():
        found = next(raw.tensors(tensor), None)
        return found is not None and found.device.type != "cpu"


def new_site(key, operation, is_async, device, frame):
    number = len(_sites) + 1
    site = number, frame and frame.f_code
    if number <= MOST_SITES:
        _sites[key] = site
        told = {"site": number, "op": operation, "place": places.place_of(frame), "async": is_async, "device": device}
        clock.ring.emit({"at": perf_counter_ns(), "collective": told})
    return site


def left(*values):
    end_of_call()
    return values[-1]


def failed(*values):
    end_of_call()


def end_of_call():
    if _open and not guard.off and get_ident() == clock.thread:
        finish()


@guard.quietly
def finish():
    end = perf_counter_ns()
    site, begun, counts = _open.pop()
    if not _open:
        # One that was called by another is a part of it.
        clock.words[W_IN_COLLECTIVE] = 0
        write(site, begun, end, counts)


def write(site, arrived, end, counts):
    global _number
    words = clock.words
    words[W_COLLECTIVE_NS] += end - arrived
    if not counts:
        return
    at = W_SLOTS + (_number % SLOTS) * SLOT_WORDS
    _number += 1
    # Nobody's while it is written.
    words[at] = 0
    words[at + 1], words[at + 2], words[at + 3] = site, arrived, end
    words[at] = _number
    words[W_COLLECTIVES] = _number


def forwarded(model):
    global _latest
    _latest = weakref.ref(model)


def preparing(outputs):
    """Right before the reducer begins to count."""
    global _latest
    model, _latest = _latest and _latest(), None
    if model is not None and not guard.off:
        prepared(model)
    return outputs


@guard.quietly
def prepared(model):
    now = perf_counter_ns()
    if len(_prepared) < 16 or id(model) in _prepared:
        _prepared[id(model)] = weakref.ref(model), now
    if id(model) not in _told:
        # Of a model that is gone, another one may have the id.
        _seen.pop(id(model), None)
        _told.add(id(model))
        describe(model)
        backward.watch(backward_began, backward_ended)


def describe(model):
    fields = raw.fields(model)
    for name in ("find_unused_parameters", "gradient_as_bucket_view", "static_graph", "broadcast_buffers"):
        if type(fields.get(name)) is bool:
            clock.fact("ddp." + name, fields[name])
    size = fields.get("bucket_bytes_cap")
    if type(size) is int:
        clock.fact("ddp.bucket_bytes", size)


def backward_began():
    if _prepared and not guard.off and not _open and get_ident() == clock.thread:
        gradients(_getframe(1))


@guard.quietly
def gradients(frame):
    for model, _ in _prepared.values():
        model = model()
        if model is not None:
            fields = raw.fields(model)
            device = fields.get("device_type") not in (None, "cpu")
            frame = users(frame)
            key = GRADIENTS, frame and id(frame.f_code), frame and frame.f_lasti, False
            site = _sites.get(key) or new_site(key, GRADIENTS, False, device, frame)
            now = perf_counter_ns()
            _open.append((site[0], now, fields.get("process_group") is _world))
            clock.words[W_IN_SINCE], clock.words[W_IN_COLLECTIVE] = now, site[0]
            return
    _prepared.clear()


def backward_ended():
    if _open and _prepared and not guard.off and get_ident() == clock.thread:
        reduced()


@guard.quietly
def reduced():
    """Whether this backward reduced gradients, and when the last of them was ready."""
    end = perf_counter_ns()
    site, begun, counts = _open.pop()
    clock.words[W_IN_COLLECTIVE] = 0
    arrived = 0
    for key, (model, base) in list(_prepared.items()):
        model = model()
        if model is None:
            del _prepared[key]
            continue
        ready = raw.fields(model)["reducer"].get_backward_stats()
        total = sum(ready)
        if total != _seen.get(key):
            _seen[key] = total
            del _prepared[key]
            # The reducer began to count a little after `base`, on a busy machine up to milliseconds.
            arrived = max(arrived, min(max(base + max(ready), begun), end))
    if arrived:
        write(site, arrived, end, counts)


def after_fork():
    global _number, _latest
    _number, _latest = 0, None
    for things in (_sites, _open, _prepared, _seen, _told):
        things.clear()
