"""Steps with one setting changed, in turn with plain ones, at the end of a trial's measurement: what it is worth to a step by itself.

One batch is given again and again, so that the loader takes no part. Both kinds are taken in turn, several times, so that what
others do on the machine falls on both. A setting that does not fit the program is left out; what a step of the program makes of one
that does, ends it at worst: what was measured before is safe by then.
"""

from time import perf_counter_ns

from _flatout_probe import extension, precision
from _flatout_probe.patches import environment, optimizer

from .sizes import counters

# Blocks of plain and of changed steps; steps before the clock starts in each, in the first changed one more of them.
ROUNDS, WARM, WARM_FIRST = 3, 1, 3
# Steps and seconds of a block that are enough, seconds that are enough for two steps.
ENOUGH, ENOUGH_S, LONG_S = 6, 0.12, 0.4
# All settings together.
ALL_S = 8.0


class Variants:
    """`wishes`: settings as `--apply` wants them, the most important first. `keep` is called with each that was told."""

    def __init__(self, torch, wishes, result, keep):
        self.torch, self.wishes, self.keep = torch, list(wishes), keep
        self.cuda = torch.cuda.is_initialized()
        self.told = result["variants"] = []
        self.until = perf_counter_ns() + ALL_S * 1e9
        extension.repeated, extension.first_samples, extension.held = 1, 0, {}
        self.done = not self.next_one()

    def next_one(self):
        """Whether there is another one that fits, and time for it."""
        while self.wishes and perf_counter_ns() < self.until:
            self.wish = self.wishes.pop(0)
            try:
                self.switch = switch_of(self.torch, self.wish)
            except Exception:
                self.switch = None
            if self.switch is not None:
                self.block, self.own = 0, ([], [])
                self.begin()
                return True
        return False

    def begin(self):
        self.changed = self.block % 2
        self.left = WARM_FIRST if self.block == 1 else WARM
        self.each = []

    def stepped(self, now):
        """Whether all is done."""
        if self.done:
            return True
        if self.cuda:
            self.torch.cuda.synchronize()
        if self.left:
            self.left -= 1
            self.begun, self.before = perf_counter_ns(), counters()
            return False
        after = counters()
        self.each.append(after[1] - self.before[1])
        self.before = after
        steps, seconds = len(self.each), (now - self.begun) / 1e9
        if (steps >= ENOUGH and seconds >= ENOUGH_S) or (steps >= 2 and seconds >= LONG_S):
            self.ended_block()
        return self.done

    def ended_block(self):
        # The same batch each time, and what others on the machine do only adds: on a CPU the step that they disturbed least tells most.
        # On a GPU that is nobody else's, a step that waits for the host takes what the host usually does.
        typical = sorted(self.each)[len(self.each) // 2 if self.cuda else 0]
        self.own[self.changed].append(max(typical, 1))
        self.block += 1
        try:
            self.switch(self.block % 2 == 1)
        except Exception:
            self.done = not self.next_one()
            return
        if self.block < 2 * ROUNDS:
            self.begin()
            return
        # The machine may be faster for a while: only blocks that followed each other are held against each other.
        ratios = sorted(changed / plain for plain, changed in zip(*self.own))
        self.told.append({"setting": self.wish, "own_ratio": ratios[len(ratios) // 2]})
        self.keep()
        self.done = not self.next_one()


def switch_of(torch, wish):
    """What puts the setting in force, or with False out of it again; `None` where it does not fit the program."""
    key, _, value = wish.partition("=")
    if key == "threads.torch":
        own, wanted = torch.get_num_threads(), int(value)
        return None if own == wanted else lambda on: torch.set_num_threads(wanted if on else own)
    if key == "tf32":
        return None if precision.tf32_matmul(torch) else lambda on: use_tf32(torch, on)
    module = model()
    if module is None or getattr(module, "_compiled_call_impl", None) is not None or type(module).__name__ == "OptimizedModule":
        return None
    inside = list(module.modules())
    convolutions = any(isinstance(part, torch.nn.Conv2d) for part in inside)
    if key == "cudnn.benchmark":
        fits = convolutions and self_searching(torch) is False
        return (lambda on: setattr(torch.backends.cudnn, "benchmark", on)) if fits else None
    if key == "channels_last":
        fits = convolutions and environment.memory_format(list(module.parameters())) == "contiguous"
        return (lambda on: format_as(torch, module, torch.channels_last if on else torch.contiguous_format)) if fits else None
    if key == "amp":
        return Autocast(torch).switch
    if key == "optimizer.fused":
        return fused_switch(torch)
    return None


def self_searching(torch):
    return torch.backends.cudnn.benchmark if torch.cuda.is_initialized() else None


def model():
    for one in optimizer.known():
        parameters = [parameter for group in one.param_groups for parameter in group["params"]]
        if parameters:
            return environment.find_model(parameters[0])[0]
    return None


def use_tf32(torch, on):
    torch.backends.cuda.matmul.allow_tf32 = on


def format_as(torch, module, memory_format):
    """The optimizers' states go along, as they would had the weights begun so."""
    module.to(memory_format=memory_format)
    for one in optimizer.known():
        for state in one.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.dim() == 4:
                    state[name] = value.contiguous(memory_format=memory_format)


class Autocast:
    """bf16 from the batch's coming to the backward pass. The probe's own patch of `autocast` is passed by: it tells what the program does."""

    _patched = False

    def __init__(self, torch):
        self.torch, self.context = torch, None
        cls = torch.amp.autocast_mode.autocast
        self.enter = getattr(cls.__enter__, "__wrapped__", cls.__enter__)

    def switch(self, on):
        if not Autocast._patched:
            Autocast._patched = True
            self.end_before_backward()
            optimizer.before_steps([self.end])
        if on:
            extension.on_batch.append(self.begin)
        else:
            extension.on_batch.remove(self.begin)
            self.end()

    def begin(self):
        if self.context is None:
            self.context = self.torch.autocast("cuda" if self.torch.cuda.is_initialized() else "cpu", dtype=self.torch.bfloat16)
            self.enter(self.context)

    def end(self):
        if self.context is not None:
            context, self.context = self.context, None
            context.__exit__(None, None, None)

    def end_before_backward(self):
        backward = self.torch.Tensor.backward

        def patched(tensor, *args, **kwargs):
            self.end()
            return backward(tensor, *args, **kwargs)

        self.torch.Tensor.backward = patched


def fused_switch(torch):
    """Of those optimizers whose fused form takes the same states."""
    ones = [one for one in optimizer.known() if type(one) in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)]
    groups = [group for one in ones for group in one.param_groups]
    if not groups or any(group.get("fused") or group.get("capturable") for group in groups):
        return None
    before = [group.get("foreach") for group in groups]

    def switch(on):
        for group, foreach in zip(groups, before):
            group["fused"], group["foreach"] = on or None, False if on else foreach
        for one in ones:
            for parameter, state in one.state.items():
                if isinstance(state.get("step"), torch.Tensor):
                    # Counted on the device by the fused form, on the host by the others.
                    state["step"] = state["step"].to(parameter.device if on else "cpu")

    return switch
