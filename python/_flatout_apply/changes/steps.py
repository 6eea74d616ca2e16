"""The step itself: the fused optimizer, gradients set to none, cuDNN's search."""

from _flatout_probe.patches import optimizer

from ..trials import variants
from . import zero
from .change import Change

# Seconds that finding the model and a search for the fastest convolutions take, and any other switch.
SEARCH_S, SWITCH_S = 0.6, 0.02


def propose(auto):
    torch = auto.torch
    found = []
    switch = fused(torch)
    if switch is not None:
        found.append(Switch("optimizer.fused", switch, 1.02))
    if torch.cuda.is_initialized() and not torch.backends.cudnn.deterministic and not torch.are_deterministic_algorithms_enabled():
        if auto.shapes.fixed() and not torch.backends.cudnn.benchmark:
            found.append(Search(torch))
    switch = zero.switch(torch)
    if switch is not None:
        found.append(Switch("zero_grad.set_to_none", switch, 1.01))
    return found


def fused(torch):
    """Only where all parameters are on the GPU: there the fused form is the faster one."""
    ones = optimizer.known()
    parameters = [parameter for one in ones for group in one.param_groups for parameter in group["params"]]
    if not parameters or not all(parameter.is_cuda and parameter.is_floating_point() for parameter in parameters):
        return None
    if not all(type(one) in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD) for one in ones):
        return None
    return variants.fused_switch(torch)


class Switch(Change):
    cost_s = SWITCH_S

    def __init__(self, key, switch, expected):
        super().__init__(key, "on", expected)
        self.switch = switch

    def put(self):
        self.switch(True)
        return None

    def back(self):
        self.switch(False)


class Search(Switch):
    """The model is looked for when the trial begins: that walks through all objects of the program."""

    settle, cost_s = 8, SEARCH_S

    def __init__(self, torch):
        super().__init__("cudnn.benchmark", None, 1.02)
        self.torch = torch

    def put(self):
        self.switch = variants.switch_of(self.torch, "cudnn.benchmark=on")
        return "no-convolution" if self.switch is None else super().put()
