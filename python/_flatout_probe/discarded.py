"""Gradients that backward computes and no optimizer uses, as those of a generator while its critic learns.

With several optimizers each backward of the steps that `arithmetic.py` looks at is sorted: which of its operators lead only to the
parameters of one optimizer. If that optimizer's gradients are gone before it has stepped, those operators worked for nothing. Whether
it stepped is read from the version of one of its parameters, which a step in place raises; a fused step does not, so an optimizer
whose version never rises is left out.
"""

from . import places, raw
from .clock import fact

MOST_OPTIMIZERS = 6
MOST_NODES = 50_000
# Of the gradients' arithmetic at a line, the part that must be for nothing; a step that is skipped once is no pattern.
SHARE, TIMES = 0.2, 2

_watched = None


class Optimizer:
    """One of its parameters stands for all: its version, and the backwards whose gradients it still holds."""

    def __init__(self, parameters):
        self.first, self.ids = parameters[0], {id(one) for one in parameters}
        self.version, self.steps, self.held = raw.version(self.first), 0, []

    def look(self, lost):
        version = raw.version(self.first)
        if version != self.version:
            self.version, self.steps = version, self.steps + 1
            self.held.clear()
        elif raw.gradient(self.first) is None:
            for place, flops in self.held:
                lost.append((place, flops))
            self.held.clear()


class Watched:
    def __init__(self, optimizers):
        self.optimizers = optimizers
        # By place: the arithmetic of all its backwards; by optimizer: what was lost, where.
        self.all, self.lost = {}, [[] for _ in optimizers]


def start():
    global _watched
    from .patches import optimizer

    found = []
    for one in optimizer.known():
        parameters = raw.optimized(one)[1]
        if parameters:
            found.append(Optimizer(parameters))
    shared = sum(len(one.ids) for one in found) != len(set().union(*(one.ids for one in found)))
    _watched = Watched(found) if 2 <= len(found) <= MOST_OPTIMIZERS and not shared else None


def stop():
    global _watched
    _watched = None


def watching():
    return _watched is not None


def began(start, operator):
    """Backward begins at these nodes; `operator` gives the kind of a node, what follows it and its arithmetic."""
    if _watched is None:
        return
    for one, lost in zip(_watched.optimizers, _watched.lost):
        one.look(lost)
    place = places.user_place(2)
    if place is None:
        return
    key = place["file"], place["line"]
    flops = sort(start, _watched.optimizers, operator)
    _watched.all[key] = _watched.all.get(key, 0) + sum(flops.values())
    for index, one in enumerate(_watched.optimizers):
        # Operators that lead to several optimizers are needed as long as one of them steps.
        if flops.get(1 << index):
            one.held.append((key, flops[1 << index]))


def tell():
    """The line that loses most."""
    watched = _watched
    stop()
    if watched is None:
        return
    lost = {}
    for one, places_and_flops in zip(watched.optimizers, watched.lost):
        for key, flops in places_and_flops if one.steps else ():
            before = lost.get(key, (0, 0))
            lost[key] = before[0] + flops, before[1] + 1
    shares = {key: flops / watched.all[key] for key, (flops, times) in lost.items() if times >= TIMES}
    key = max(shares, key=shares.get, default=None)
    if key is not None and shares[key] >= SHARE:
        fact("backward.discarded", shares[key], None, {"file": key[0], "line": key[1]})


def sort(start, optimizers, operator):
    """The arithmetic of a graph by the optimizers that its operators lead to, as bits; leaves of none have the last bit."""
    leads, flops, kept = {}, {}, {}
    waiting = [(node, None) for node in start]
    while waiting:
        node, seen = waiting.pop()
        if seen is None:
            if id(node) in leads:
                continue
            # Kept until the end: another node may get the number of one that is gone.
            kept[id(node)] = node
            if len(kept) > MOST_NODES:
                return {}
            kind, following, own = operator(node)
            below = [one for one, _ in following if one is not None]
            leads[id(node)] = 0
            waiting.append((node, (kind, below, own)))
            waiting.extend((one, None) for one in below if id(one) not in leads)
            continue
        kind, below, own = seen
        bits = leaf(node, optimizers) if kind == "AccumulateGrad" else 0
        for one in below:
            bits |= leads[id(one)]
        leads[id(node)] = bits
        flops[bits] = flops.get(bits, 0) + own
    return flops


def leaf(node, optimizers):
    parameter = node.variable
    for index, one in enumerate(optimizers):
        if id(parameter) in one.ids:
            return 1 << index
    return 1 << len(optimizers)
