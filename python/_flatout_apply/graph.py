"""`step.graph`: the model's step as CUDA graphs (`torch.compile(mode="reduce-overhead")`), once the first batches had one shape."""

from _flatout_probe.patches import loader as watched

from .changes.shapes import Shapes

# Batches that must have one shape.
WATCHED = 8


def install(torch, change, tell):
    """`change(mode)` compiles the model."""
    shapes = Shapes()

    def batch_came(batch):
        shapes.batch_came(batch)
        if sum(shapes.seen.values()) < WATCHED:
            return
        watched.on_got.remove(batch_came)
        if not torch.cuda.is_initialized():
            tell("graphs-need-gpu")
        elif not shapes.fixed():
            tell("shapes-change")
        else:
            tell(change("reduce-overhead"))

    watched.on_got.append(batch_came)
