//! What the GPU did in a short window of a normal run, from CUPTI's activity records, joined with the host's samples.

use super::StackCount;
use super::profile::{Copy, NamedTime};
use serde::{Deserialize, Serialize};

/// One window. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuWindow {
    /// Its end, seconds since the start of the record.
    pub t: f64,
    pub wall_ms: f64,
    /// Optimizer steps inside.
    pub steps: u64,
    /// Every instant belongs to one of these; the first that applies counts. They add up to the wall time.
    pub computing_ms: f64,
    pub communicating_ms: f64,
    pub copying_ms: f64,
    pub idle_ms: f64,
    pub kernels: u64,
    /// Kernel time by kind, the largest first; kernels that overlap count twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindTime>,
    /// The costliest kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top: Vec<NamedTime>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Copy>,
    /// Synchronizations that block the host, by kind: `stream`, `event`, `context`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub syncs: Vec<NamedTime>,
    /// The same that wait for a stream, by what the host ran, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_stacks: Vec<SyncStack>,
    /// Samples of the training thread inside the window, each with what the GPU did at that instant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackCount>,
    /// Kernels and copies by what the host ran when it launched them, the largest first. Only windows that record launches
    /// have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchStack>,
    /// Records that were lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// What a kernel computes, as far as its name tells.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum KernelKind {
    /// Matrix multiplications and convolutions on tensor cores.
    TensorCore,
    /// The same in single precision, without tensor cores.
    MatrixFp32,
    MatrixFp64,
    FusedAttention,
    Softmax,
    /// Recurrent layers of cuDNN: matrix multiplications and gates in one kernel.
    Recurrent,
    /// Elementwise operators, copies, casts.
    Elementwise,
    /// Conversions between NCHW and NHWC around convolutions.
    Layout,
    Reduction,
    Optimizer,
    Communication,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KindTime {
    pub kind: KernelKind,
    pub ms: f64,
    pub count: u64,
    /// Of `count`, those shorter than 5 µs.
    #[serde(default)]
    pub tiny: u64,
}

impl KindTime {
    /// No kernels of this kind yet.
    pub fn none(kind: KernelKind) -> Self {
        Self {
            kind,
            ms: 0.0,
            count: 0,
            tiny: 0,
        }
    }
}

/// Synchronizations of one stack of the training thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SyncStack {
    /// Outermost first.
    pub frames: Vec<String>,
    pub count: u64,
    pub ms: f64,
}

/// What one stack of the training thread launched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchStack {
    /// Outermost first.
    pub frames: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindTime>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Copy>,
}

impl LaunchStack {
    /// Milliseconds that the GPU worked for it.
    pub fn ms(&self) -> f64 {
        let kernels: f64 = self.kinds.iter().map(|kind| kind.ms).sum();
        kernels + self.copies.iter().map(|copy| copy.ms).sum::<f64>()
    }

    /// Adds what another stack launched.
    pub fn merge(&mut self, other: &Self) {
        for more in &other.kinds {
            match self.kinds.iter_mut().find(|kind| kind.kind == more.kind) {
                Some(kind) => {
                    kind.ms += more.ms;
                    kind.count += more.count;
                    kind.tiny += more.tiny;
                }
                None => self.kinds.push(more.clone()),
            }
        }
        for more in &other.copies {
            let same = |copy: &&mut Copy| copy.direction == more.direction && copy.memory == more.memory;
            match self.copies.iter_mut().find(same) {
                Some(copy) => {
                    copy.count += more.count;
                    copy.bytes += more.bytes;
                    copy.ms += more.ms;
                }
                None => self.copies.push(more.clone()),
            }
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
