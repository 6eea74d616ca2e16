"""What is in the first batches of a loader: padding, samples that came before, shapes that change.

The bytes of tensors in host memory are read, nothing is computed with them: neither an operator nor a line of the program runs.
"""

from ctypes import string_at

from . import clock, guard, raw

# Batches of a loader that are looked at, and what is worth looking at.
BATCHES = 8
MOST_BYTES = 4 << 20
MOST_ROWS = 64
# Shorter rows have no padding worth the name; rows of fewer bytes are alike by chance.
SHORTEST_ROW, FEWEST_BYTES = 8, 32
# Rows that end in the same value this often are padded with it.
MANY = 0.5
FEWEST_TOKENS, RARE = 8, 0.02
FORMATS = {"torch.int64": "q", "torch.int32": "i", "torch.int16": "h", "torch.uint8": "B", "torch.int8": "b", "torch.bool": "B"}

_is_lazy = None


class Contents:
    """What the batches of one loader held."""

    def __init__(self, iterable):
        self.batches = 0
        self.padded = self.trimmed = self.values = 0
        self.masked = False
        self.shapes = set()
        self.rows = set() if iterable else None
        self.fresh = self.again = 0


def install(torch):
    global _is_lazy
    _is_lazy = getattr(torch._C, "_is_cow_tensor", None)


@guard.quietly
def look(found, batch, scope):
    """One of the first batches."""
    found.batches += 1
    with raw.without_functions():
        padding(found, batch)
        first = next(raw.tensors(batch), None)
        if first is not None:
            found.shapes.add(tuple(first.shape)[1:])
            if found.rows is not None:
                samples(found, first)
    if found.batches == BATCHES:
        tell(found, scope)


def tell(found, scope):
    if found.values:
        clock.fact("padding.share", found.padded / found.values, scope)
        clock.fact("padding.trim", found.trimmed / found.values, scope)
        clock.fact("padding.mask", found.masked, scope)
    clock.fact("input.shapes", len(found.shapes), scope)
    if found.rows is not None and found.fresh + found.again:
        clock.fact("loader.repeated", found.again / (found.fresh + found.again), scope)
    found.shapes, found.rows = (), None


def content(tensor):
    """The bytes of a tensor in host memory; None where they are elsewhere, too many or not in a row."""
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided" or not tensor.is_contiguous():
        return None
    size = tensor.numel() * tensor.element_size()
    if not 0 < size <= MOST_BYTES or (_is_lazy is not None and _is_lazy(tensor)):
        return None
    return string_at(tensor.data_ptr(), size)


def padding(found, batch):
    """The share of padding: of the attention mask's zeros, else of a value that most rows end with."""
    mask = raw.named(batch, "attention_mask")
    if mask is not None and raw.is_tensor(mask) and mask.dim() == 2:
        lengths, width = of_mask(mask)
        found.masked = found.masked or lengths is not None
    else:
        candidates = (one for one in raw.tensors(batch) if one.dim() == 2 and str(one.dtype) in ("torch.int64", "torch.int32"))
        lengths, width = of_tokens(next(candidates, None))
    if lengths:
        found.values += width * len(lengths)
        found.padded += sum(width - length for length in lengths)
        found.trimmed += (width - max(lengths)) * len(lengths)


def rows_of(tensor):
    """The rows as numbers, and their length."""
    if tensor is None or tensor.shape[1] < SHORTEST_ROW:
        return None, 0
    form, data = FORMATS.get(str(tensor.dtype)), content(tensor)
    if form is None or data is None:
        return None, 0
    width = int(tensor.shape[1])
    values = memoryview(data).cast(form)
    return [values[start : start + width] for start in range(0, len(values), width)][:MOST_ROWS], width


def of_mask(mask):
    rows, width = rows_of(mask)
    return ([width - row.tolist().count(0) for row in rows], width) if rows else (None, 0)


def of_tokens(tensor):
    rows, width = rows_of(tensor)
    if not rows or len(rows) < 2:
        return None, 0
    ends = [row[-1] for row in rows]
    pad = max(set(ends), key=ends.count)
    lengths = [length_without(row, pad) for row in rows]
    several = sum(1 for length in lengths if width - length > 1)
    # Padding differs from row to row; what is the same in all of them is a part of the data.
    if several < MANY * len(rows) or len(set(lengths)) < 2:
        return None, 0
    real = [value for row, length in zip(rows, lengths) for value in row[:length]]
    # Tokens are of many kinds, and the padding's own is none of them: flags and counts end with zeros, too, but have them everywhere.
    if len(set(real)) < FEWEST_TOKENS or real.count(pad) > RARE * len(real):
        return None, 0
    return lengths, width


def length_without(row, pad):
    length = len(row)
    while length and row[length - 1] == pad:
        length -= 1
    return length


def samples(found, tensor):
    """Samples that an earlier batch had: workers that each read everything give each of them once per worker."""
    data, count = content(tensor), int(tensor.shape[0]) if tensor.dim() else 0
    if data is None or not count:
        return
    size = len(data) // count
    if size < FEWEST_BYTES:
        return
    rows = {data[start : start + size] for start in range(0, min(count, MOST_ROWS) * size, size)}
    if len(rows) * 10 < min(count, MOST_ROWS) * 9:
        # The data repeats itself.
        found.rows = None
        return
    hashes = {hash(row) for row in rows}
    again = len(hashes & found.rows)
    found.again += again
    found.fresh += len(hashes) - again
    found.rows |= hashes
