//! What the GPU did in a short window of a normal run, from CUPTI's activity records, joined with the host's samples.

use super::StackCount;
use super::profile::{Copy, NamedTime};
use serde::{Deserialize, Serialize};

/// One window. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Samples of the training thread inside the window, each with what the GPU did at that instant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackCount>,
    /// Records that were lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// What a kernel computes, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelKind {
    /// Matrix multiplications and convolutions on tensor cores.
    TensorCore,
    /// The same in single precision, without tensor cores.
    MatrixFp32,
    MatrixFp64,
    FusedAttention,
    Softmax,
    /// Elementwise operators, copies, casts.
    Elementwise,
    Reduction,
    Optimizer,
    Communication,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindTime {
    pub kind: KernelKind,
    pub ms: f64,
    pub count: u64,
    /// Of `count`, those shorter than 5 µs.
    #[serde(default)]
    pub tiny: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
