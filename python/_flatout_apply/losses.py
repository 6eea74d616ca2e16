"""The loss guard of `--auto --allow`: the losses of the steps with a change against those just before it. The values stay on the device
until a change is judged."""

import math

from _flatout_probe import clock, guard

# Steps that are kept, steps that are needed, and how much higher the mean may be, next to twice its error.
MOST, LEAST, TOLERANCE = 2000, 8, 0.02

_losses = []


def install(torch):
    backward, compiling = torch.Tensor.backward, guard.compiling

    @guard.like(backward)
    def patched(self, *args, **kwargs):
        if not compiling() and not guard.off and self.dim() == 0 and clock.mine():
            _losses.append(self.detach())
            if len(_losses) > MOST:
                del _losses[: MOST // 2]
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = patched


def waiting():
    """How many came since they were taken."""
    return len(_losses)


def take():
    """The losses since the last call."""
    found = [loss.float().item() for loss in _losses]
    _losses.clear()
    return found


def hurt(before, after):
    """Whether the later losses are worse than the earlier ones, by more than their noise; None where there are too few: then nothing is proved."""
    if any(not math.isfinite(loss) for loss in after) and all(math.isfinite(loss) for loss in before):
        return True
    if len(before) < LEAST or len(after) < LEAST:
        return None
    (was, was_error), (now, now_error) = mean_and_error(before), mean_and_error(after)
    return now > was + TOLERANCE * abs(was) + 2 * (was_error + now_error)


def mean_and_error(values):
    mean = sum(values) / len(values)
    return mean, (sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)) ** 0.5
