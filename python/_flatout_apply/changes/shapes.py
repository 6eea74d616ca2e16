"""Whether all batches have the same shapes, except for an epoch's last."""

from _flatout_probe import raw


class Shapes:
    def __init__(self):
        self.seen = {}

    def batch_came(self, batch):
        with raw.without_functions():
            shapes = tuple(tuple(one.shape) for one in raw.tensors(batch))
        self.seen[shapes] = self.seen.get(shapes, 0) + 1

    def fixed(self):
        counts = sorted(self.seen.values())
        return len(counts) == 1 or (len(counts) == 2 and counts[0] * 8 <= counts[1])
