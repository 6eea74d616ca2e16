//! Facts: settings really in force and where they were set; and the main thread's stacks.

use super::Phase;
use flatout_core::Place;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A setting really in force. A later fact of the same key and scope replaces the earlier one.
///
/// Keys, with the scope `loader.N` or `model` or `optimizer.N` where there can be several:
/// `loader.num_workers`, `loader.batch_size`, `loader.pin_memory`, `loader.persistent_workers`, `loader.prefetch_factor`,
/// `loader.drop_last`, `loader.shuffle`, `loader.dataset` (class), `loader.length` (samples), `loader.multiprocessing_context`
/// (their place is where the loader was built);
/// `amp.dtype` (`bf16`, `fp16`, or `off` once steps ran without), `amp.asked` (autocast was built but with `enabled=False`, or a
/// scaler exists), `tf32.matmul`, `tf32.cudnn`, `cudnn.benchmark`, `cudnn.deterministic`, `matmul.precision`;
/// `compile.applied`, `compile.called`, `compile.mode`; `optimizer.class`, `optimizer.fused`, `optimizer.foreach`,
/// `zero_grad.set_to_none`; `parallel.class` (`DataParallel`, `DistributedDataParallel`), `parallel.world_size`;
/// `model.parameters`, `model.tensors` (parameter tensors), `model.dtype`, `model.bytes`, `model.class`, `model.has_rnn`, `model.has_conv`, `model.memory_format`;
/// `input.dtype`, `input.device`, `input.pinned`, `input.bytes` (a batch), `input.shape` (of its first tensor); `step.accumulation`; `device` (`cuda`, `cpu`),
/// `device.count`, `device.used`, `cuda.visible` (`CUDA_VISIBLE_DEVICES`); `threads.torch`; `python.version`, `torch.version`, `torch.cuda`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub t: f64,
    pub key: String,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// Where the training thread (and one worker of its loader) was since the last line: counts per stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackTick {
    pub t: f64,
    pub stacks: Vec<StackCount>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackCount {
    /// `function (file:line)`, outermost first.
    pub frames: Vec<String>,
    pub count: u64,
    /// The phase that was under way; unknown before the probe speaks, and for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Held the interpreter's lock: Python itself was running, not an operator that had let go of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gil: bool,
    /// A loader's worker, not the training thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
}
