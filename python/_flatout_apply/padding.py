"""`padding.trim`: batches with an attention mask are cut to their longest row. Only columns without any token go, and only where labels
there are ignored, so the loss sums over the same tokens. Rounding and dropout change with the shape."""

from torch import Tensor, cuda

MASK, LABELS, IGNORED = "attention_mask", "labels", -100
# Tensor cores want multiples of this.
MULTIPLE = 8


class Trimmed:
    """A collate_fn around the program's own. `tell(reason)` is called once, with None where batches are cut."""

    def __init__(self, collate, tell):
        self.collate, self.tell = collate, tell

    def __call__(self, samples):
        return trimmed(self.collate(samples), self.tell)

    def __reduce__(self):
        # Spawned workers have it without the telling.
        return Trimmed, (self.collate, _nobody)


def trimmed(batch, tell):
    try:
        found = window(batch)
    except Refused as reason:
        tell(str(reason))
        return batch
    tell(None)
    return cut(batch, *found) if found is not None else batch


def _nobody(reason):
    pass


class Refused(Exception):
    pass


def fields_of(batch):
    """The batch as a dictionary; transformers' batches hold one."""
    inner = batch if isinstance(batch, dict) else getattr(batch, "data", None)
    if not isinstance(inner, dict) or not isinstance(inner.get(MASK), Tensor) or inner[MASK].dim() != 2:
        raise Refused("no-mask")
    return inner


def window(batch):
    """The columns that hold tokens, as a beginning and an end; None where all do."""
    inner = fields_of(batch)
    mask = inner[MASK]
    width = mask.shape[1]
    used = mask.ne(0).any(0).nonzero()
    if not len(used):
        return None
    first, last = int(used[0]), int(used[-1]) + 1
    wanted = min(-(-(last - first) // MULTIPLE) * MULTIPLE, width)
    # Padding on the left or on the right, whichever the batch has.
    begin, end = (first, first + wanted) if first + wanted <= width else (width - wanted, width)
    if first < begin or end < last or end - begin >= width:
        return None
    labels = inner.get(LABELS)
    if isinstance(labels, Tensor) and tuple(labels.shape) == tuple(mask.shape):
        if not bool(labels[:, :begin].eq(IGNORED).all()) or not bool(labels[:, end:].eq(IGNORED).all()):
            raise Refused("labels-in-padding")
    if begin and "position_ids" not in inner:
        # Positions are counted from the left: they would be others.
        raise Refused("left-padding")
    return begin, end


def cut(batch, begin, end):
    inner = fields_of(batch)
    shape, found = tuple(inner[MASK].shape), {}
    for name, value in inner.items():
        if isinstance(value, Tensor) and tuple(value.shape[:2]) == shape:
            part = value[:, begin:end].contiguous()
            # Where batches are pinned, the program may copy without waiting. In a worker nothing is pinned yet, and asking would start CUDA.
            found[name] = part.pin_memory() if cuda.is_initialized() and value.is_pinned() else part
    # All of them or none.
    inner.update(found)
    return batch
