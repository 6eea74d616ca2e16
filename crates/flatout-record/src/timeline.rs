//! One or two steps event by event: what the host, the GPU's streams and a loader worker did, for drawings and trace viewers.

use super::{Blocked, KernelKind, Phase};
use serde::{Deserialize, Serialize};

/// A step (or a few short ones) of a window. Times are microseconds since its beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepTimeline {
    /// Its beginning, seconds since the start of the record.
    pub t: f64,
    pub us: f64,
    /// Whole steps inside; 0 where a step is longer than the window.
    pub steps: u64,
    /// Stacks that `host` and `workers` name by their index: frames as in the record's stacks.
    pub stacks: Vec<Vec<String>>,
    /// The training thread, sample by sample.
    pub host: Vec<HostSlice>,
    /// One worker of its loader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<HostSlice>,
    /// Names that `gpu` refers to by their index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<GpuSlice>,
    /// There were more events than are kept: the end is earlier than the step's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Samples of one stack in a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostSlice {
    pub at: f64,
    pub us: f64,
    pub stack: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Held the interpreter's lock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gil: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
}

/// A kernel, a copy or a memset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuSlice {
    pub at: f64,
    pub us: f64,
    pub stream: u32,
    pub name: usize,
    /// What a kernel computes; `None` for copies and memsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<KernelKind>,
    /// Bytes of a copy or a memset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
