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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StackTick {
    pub t: f64,
    pub stacks: Vec<StackCount>,
    /// Time the training thread was ready to run but no CPU was free, and the time it was looked at, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descheduled_ms: Option<(f64, f64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StackCount {
    /// `function (file:line)`, outermost first.
    pub frames: Vec<String>,
    pub count: u64,
    /// The time these samples stand for. Samples inside a window are closer together than outside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ms: f64,
    /// The phase that was under way; unknown before the probe speaks, and for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Held the interpreter's lock: Python itself was running, not an operator that had let go of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gil: bool,
    /// A loader's worker, not the training thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
    /// What the thread was blocked in; `None` while it runs, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// What the GPU did at these instants; `None` outside of GPU windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuState>,
}

/// Milliseconds between two samples where the record does not have them: 0.1.0 sampled 20 times per second.
const OLD_PERIOD_MS: f64 = 50.0;

impl StackCount {
    /// The time these samples stand for, in milliseconds.
    pub fn time_ms(&self) -> f64 {
        if self.ms > 0.0 {
            self.ms
        } else {
            self.count as f64 * OLD_PERIOD_MS
        }
    }
}

/// What a thread that does not run waits for, from the system call it is in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Blocked {
    /// Reading or writing a file, a pipe or a device.
    File,
    /// `fsync` and its kin.
    Flush,
    Sleep,
    /// A lock or a condition of this process.
    Lock,
    /// `poll`, `select`, a socket.
    Poll,
    /// Another process that must end first.
    Process,
    /// Anything else in the kernel.
    Kernel,
}

/// What the GPU did at an instant.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum GpuState {
    Computing,
    Copying,
    Communicating,
    Idle,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// A line of the user's source that samples fell on: what a reader of the record needs to name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    /// The statement, without indentation, on one line.
    pub text: String,
    /// The loops around it within its function, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<SourceLoop>,
    /// Ids of lint rules that report this line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lint: Vec<String>,
    /// Classes of libraries that this line makes an object of, where samples fell on their methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makes: Vec<String>,
}

/// A `for` or `while` in the user's source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceLoop {
    pub line: u32,
    /// `for t in range(steps)`.
    pub text: String,
}
