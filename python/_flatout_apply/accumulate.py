"""`step.accumulation=N`: the optimizer steps at every Nth call only, and each loss counts 1/N, so that N small batches are one."""

from types import MethodType

from .settings import told, values


def install(torch):
    many = values.get("step.accumulation")
    if many is None:
        return
    if type(many) is not int or many < 1:
        told("step.accumulation", "unknown-value")
        return
    backward = torch.Tensor.backward

    def patched(self, *args, **kwargs):
        return backward(self / many if self.dim() == 0 and many > 1 else self, *args, **kwargs)

    torch.Tensor.backward = patched


def optimizer_made(optimizer):
    many = values.get("step.accumulation")
    if type(many) is not int or many < 1:
        return
    if many > 1:
        hold(optimizer, many)
    told("step.accumulation")


def hold(optimizer, many):
    step, zero_grad = optimizer.step, optimizer.zero_grad
    calls = 0

    def held_step(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        return None if calls % many else step(*args, **kwargs)

    def held_zero_grad(self, *args, **kwargs):
        return None if calls % many else zero_grad(*args, **kwargs)

    optimizer.step = MethodType(held_step, optimizer)
    optimizer.zero_grad = MethodType(held_zero_grad, optimizer)
