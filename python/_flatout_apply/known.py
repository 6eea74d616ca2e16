"""The settings of `--apply`. Written by flatout-vocabulary from its table: add a setting there."""

# Arguments of a DataLoader.
LOADER = (
    "batch_size",
    "num_workers",
    "prefetch_factor",
    "pin_memory",
    "persistent_workers",
)
KNOWN = {
    "loader.batch_size",
    "loader.num_workers",
    "loader.prefetch_factor",
    "loader.pin_memory",
    "loader.persistent_workers",
    "loader.batched",
    "loader.resident",
    "loader.threads",
    "padding.trim",
    "step.graph",
    "amp",
    "tf32",
    "cudnn.benchmark",
    "matmul.precision",
    "channels_last",
    "optimizer.fused",
    "optimizer.foreach",
    "optimizer.lr_scale",
    "compile",
    "step.accumulation",
    "zero_grad.set_to_none",
    "gc.freeze",
    "malloc.keep",
    "threads.torch",
}
