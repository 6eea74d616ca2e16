"""The arithmetic of a step, from the graph that autograd keeps anyway.

A counting dispatch mode (`torch.utils.flop_counter`) would change what runs: compiled code falls back, the program's own modes see
another one. The graph is only read: which operators, and the shapes of what they gave. No saved tensor is unpacked, because hooks
(of a checkpointed part, of the program) would run. A few steps are looked at, once.

Matrix multiplications, convolutions, attention and recurrent layers count; all else is small. One whose inputs cannot be told, or a
part that is compiled, makes the sum a lower bound, and then only that is told.
"""

from math import prod
from time import perf_counter_ns

from . import clock, discarded, extension, guard, places, raw
from .ring import W_STEPS
from .weave import weave

# The steps that are looked at, and the time that may take.
FIRST, STEPS = 8, 4
# With several optimizers, each must have stepped.
STEPS_OF_SEVERAL = 12
MOST_NS = 30_000_000
MOST_NODES = 50_000
# Operators between the two matrix multiplications of attention and its softmax.
BETWEEN = ("View", "UnsafeView", "Expand", "Div", "Mul", "Add", "Sub", "MaskedFill", "Where", "ToCopy", "Transpose", "NativeDropout")
BETWEEN += ("ReshapeAlias", "Clone", "Alias", "Copy", "Permute", "Squeeze", "Unsqueeze", "Slice", "FusedDropout", "Float")
PRODUCTS = ("Mm", "Addmm", "Bmm", "Baddbmm", "Addbmm", "Mv", "Addmv")

_torch = None
_woven = []
_from = -1
_done = False
_calls = _looked = _spent = 0
_total = _place = None


class Sum:
    """What the graphs held: operations by dtype, operators, attention that is not fused, dense gradients of embedding tables, the
    smallest number of rows, whether all is known."""

    def __init__(self):
        self.flops, self.whole = {}, True
        self.unfused = self.math = self.tokens = self.nodes = 0
        # Of embedding tables with dense gradients: the values of a whole gradient, and those of the rows that were looked up.
        self.table = self.looked_up = 0
        self.rows = None


def install(torch):
    global _torch
    _torch = torch
    if not hasattr(torch._C, "_FunctionBase") or not clock.folder or extension.in_trial():
        # A trial of `flatout tune` measures steps, and nothing may take time in them.
        return
    for function, name in ((torch.autograd.backward, "tensors"), (torch.autograd.grad, "outputs")):
        woven = weave(function, (name,), enter=began, traced=True)
        if woven is not None:
            woven.rest()
            _woven.append(woven)
    if _woven:
        clock.after_some_steps.append(look)


def look(now):
    """After a step."""
    global _from, _calls, _looked, _spent, _total
    steps = clock.words[W_STEPS]
    if _from < 0 and steps >= FIRST:
        _from, _calls, _looked, _spent, _total = steps, 0, 0, 0, Sum()
        discarded.start()
        for woven in _woven:
            woven.wake()
    elif _from >= 0 and steps - _from >= (STEPS_OF_SEVERAL if discarded.watching() else STEPS):
        finish(steps - _from)


@guard.quietly
def finish(steps):
    global _done, _total
    stop()
    total, _total, _done = _total, None, True
    discarded.tell()
    if not _looked:
        return
    times = _calls / _looked
    if total.table:
        clock.fact("embedding.gradient_values", total.table * times / steps)
        clock.fact("embedding.used_values", total.looked_up * times / steps)
    if not total.flops:
        return
    flops = sum(total.flops.values()) * times / steps
    clock.fact("step.flops" if total.whole else "step.flops_at_least", flops)
    clock.fact("step.flops_dtype", max(total.flops, key=total.flops.get))
    clock.fact("step.backwards", _calls / steps, None, _place)
    if total.rows:
        clock.fact("backward.rows", total.rows)
    clock.fact("backward.nodes", round(total.nodes / _looked))
    clock.fact("attention.unfused", round(total.unfused / _looked))
    if total.unfused:
        clock.fact("attention.math", round(total.math / _looked))
        clock.fact("attention.tokens", total.tokens)


def stop():
    for woven in _woven:
        woven.rest()
    if look in clock.after_some_steps:
        clock.after_some_steps.remove(look)


def began(tensors):
    """Backward begins."""
    global _calls, _looked, _spent, _place
    if guard.off or _total is None or clock.get_ident() != clock.thread:
        return
    _calls += 1
    if _spent > MOST_NS:
        return
    try:
        begin = perf_counter_ns()
        _place = _place or places.user_place(2)
        with raw.without_functions():
            start = list(roots(tensors))
            add(_total, start)
            discarded.began(start, operator)
        _looked += 1
        _spent += perf_counter_ns() - begin
    except BaseException as error:
        if guard.foreign(error, "backward"):
            raise


def roots(tensors):
    found = (tensors,) if raw.is_tensor(tensors) else tensors if type(tensors) in (list, tuple) else ()
    for tensor in found[:64]:
        if raw.is_tensor(tensor):
            node = raw.producer(tensor)
            if node is not None:
                yield node


def add(total, start):
    """Goes through a graph once."""
    seen, waiting = {}, list(start)
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        # Kept until the end: another node may get the number of one that is gone.
        seen[id(node)] = node
        if len(seen) > MOST_NODES:
            total.whole = False
            break
        own = own_kind(node)
        if own is None:
            # Written in Python: what it computes is not known.
            total.whole = False
            after = raw.next_of_python(node)
        else:
            after = node.next_functions
            total.nodes += own != "AccumulateGrad"
            count(total, own, node, after)
        waiting.extend(one for one, _ in after)


def operator(node):
    """Its kind, what follows it, and its arithmetic."""
    own = own_kind(node)
    if own is None:
        return None, raw.next_of_python(node), 0
    counted, after = Sum(), node.next_functions
    count(counted, own, node, after)
    return own, after, sum(counted.flops.values())


def own_kind(node):
    """`Addmm` of `AddmmBackward0`; None for a function written in Python."""
    kind = type(node)
    if raw.is_python_function(kind):
        return None
    name = raw.name_of(kind)
    return name.partition("Backward")[0]


def shapes(after):
    """The shape of what each input is; None of one without a gradient."""
    found = []
    for node, number in after:
        given = raw.given_by(node)
        found.append(tuple(given[number].shape) if given is not None and number < len(given) else None)
    return found


def count(total, kind, node, after):
    if kind in PRODUCTS:
        product(total, kind, node, after)
    elif "onvolution" in kind:
        convolution(total, node, after)
    elif "ScaledDotProduct" in kind or kind.startswith(("EfficientAttention", "FlashAttention")):
        attention(total, node, after)
    elif "Rnn" in kind or kind == "ThnnFused" or kind.startswith("_thnn"):
        recurrent(total, node, after)
    elif kind == "Embedding":
        embedding(total, node)
    elif kind.startswith("CompiledFunction"):
        total.whole = False


def put(total, node, flops, gradients, rows=None):
    """An operator's forward, and as much for each gradient."""
    given = raw.given_by(node)
    dtype = str(given[0].dtype).replace("torch.", "") if given else "float32"
    total.flops[dtype] = total.flops.get(dtype, 0) + flops * (1 + gradients)
    if rows:
        total.rows = rows if total.rows is None else min(total.rows, rows)


def product(total, kind, node, after):
    given = raw.given_by(node)
    out = tuple(given[0].shape) if given else ()
    first, second = (1, 2) if kind.startswith("Ad") or kind == "Baddbmm" else (0, 1)
    found = shapes(after)
    inner = None
    for name in ("_saved_mat1_sym_sizes", "_saved_self_sym_sizes") if kind in ("Addmm", "Mm") else ():
        sizes = getattr(node, name, None)
        if sizes is not None and len(sizes) == 2:
            inner = sizes[-1]
            break
    if inner is None and first < len(found) and found[first]:
        inner = found[first][-1]
    if inner is None and second < len(found) and found[second]:
        inner = found[second][-2] if len(found[second]) > 1 else found[second][0]
    if inner is None or not out:
        total.whole = False
        return
    gradients = sum(1 for place in (first, second) if place < len(after) and after[place][0] is not None)
    put(total, node, 2 * prod(out) * int(inner), gradients, out[0] if kind in ("Addmm", "Mm") else None)
    if kind in ("Bmm", "Baddbmm"):
        unfused(total, after[first][0])


def unfused(total, node):
    """Whether this product weighs values by a softmax of another product: attention as separate operators."""
    softmax = through(node, ("Softmax", "SafeSoftmax"))
    if softmax is None:
        return
    below = softmax.next_functions
    if below and through(below[0][0], ("Bmm", "Baddbmm")) is not None:
        total.unfused += 1
        total.math += own_kind(softmax) == "SafeSoftmax"
        given = raw.given_by(softmax)
        total.tokens = max(total.tokens, int(given[0].shape[-1]) if given and len(given[0].shape) else 0)


def through(node, wanted, steps=10):
    """The nearest operator of these below, past those that only reshape, scale, mask or drop."""
    while node is not None and steps:
        kind = own_kind(node)
        if kind in wanted:
            return node
        if kind not in BETWEEN:
            return None
        inputs = [one for one, _ in node.next_functions if one is not None]
        node, steps = (inputs[0] if inputs else None), steps - 1
    return None


def convolution(total, node, after):
    given, found = raw.given_by(node), shapes(after)
    weight = found[1] if len(found) > 1 else None
    if not given or not weight or len(weight) < 3:
        total.whole = False
        return
    out = tuple(given[0].shape)
    transposed = bool(getattr(node, "_saved_transposed", False))
    if transposed and not found[0]:
        total.whole = False
        return
    # Each output position takes a product with every weight of its group; of a transposed one, each input position.
    positions = prod((found[0] if transposed else out)[2:]) * out[0]
    put(total, node, 2 * positions * prod(weight), sum(1 for one, _ in after[:2] if one is not None), out[0])


def attention(total, node, after):
    found = shapes(after)[:3]
    if len(found) < 3 or any(shape is None or len(shape) < 3 for shape in found):
        total.whole = False
        return
    query, key, value = found
    flops = 2 * prod(query) * key[-2] + 2 * prod(query[:-1]) * key[-2] * value[-1]
    # Five products backward, of which one computes the scores again: as many as the graph needs, four, count.
    put(total, node, flops, 2)


def embedding(total, node):
    """A table that a lookup gives a dense gradient to."""
    given, rows = raw.given_by(node), getattr(node, "_saved_weight_sym_argsize_0", None)
    if not given or rows is None or getattr(node, "_saved_sparse", True):
        return
    shape = tuple(given[0].shape)
    total.table += int(rows) * shape[-1]
    total.looked_up += min(int(rows), prod(shape[:-1])) * shape[-1]


def recurrent(total, node, after):
    given = raw.given_by(node)
    weights = [shape for shape in shapes(after)[1:] if shape is not None and len(shape) == 2]
    if not given or not weights or len(given[0].shape) != 3:
        total.whole = False
        return
    out = given[0].shape
    put(total, node, 2 * out[0] * out[1] * sum(prod(shape) for shape in weights), 2)


def after_fork():
    global _total
    _total = None
    discarded.stop()
    stop()
