"""The random numbers that a program's own code can draw from without having made a generator: torch's, NumPy's and Python's."""

import random
import sys

import torch


def state():
    """Everything that one draw changes."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.mtrand._rand.get_state(legacy=False)["state"] if numpy is not None else None
    return (
        torch.default_generator.get_state().numpy().tobytes() if numpy is not None else tuple(torch.default_generator.get_state().tolist()),
        random.getstate(),
        (drawn["pos"], drawn["key"].tobytes()) if drawn is not None else None,
    )


class Kept:
    """Puts back what is drawn inside the block."""

    def __enter__(self):
        self.torch, self.python = torch.default_generator.get_state(), random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = numpy.random.get_state() if numpy is not None else None

    def __exit__(self, *error):
        torch.default_generator.set_state(self.torch)
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
