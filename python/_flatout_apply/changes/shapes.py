"""Whether all batches have the same shapes, except for an epoch's last."""

from _flatout_probe import raw


class Shapes:
    def __init__(self):
        self.seen, self.size = {}, 0

    def batch_came(self, batch):
        with raw.without_functions():
            found = list(raw.tensors(batch))
            shapes = tuple(tuple(one.shape) for one in found)
            self.size = sum(one.numel() * one.element_size() for one in found)
        self.seen[shapes] = self.seen.get(shapes, 0) + 1

    def fixed(self):
        counts = sorted(self.seen.values())
        return len(counts) == 1 or (len(counts) == 2 and counts[0] * 8 <= counts[1])

    def tensors(self):
        """In a batch."""
        return max(map(len, self.seen), default=1)

    def bytes(self):
        """Of the batch that came last."""
        return self.size
