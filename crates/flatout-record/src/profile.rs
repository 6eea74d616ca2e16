//! What a few steps under PyTorch's profiler showed: `profile.json` of a record.

use serde::{Deserialize, Serialize};

/// Sums over the profiled steps. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Profile {
    /// Steps under the profiler; 0 when the trace marks none.
    pub steps: u64,
    /// From the first step's begin to the last one's end, device included.
    pub span_ms: f64,
    /// Events read.
    pub events: u64,
    /// The trace ended in the middle: the figures are of what was there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// More events than are kept: gaps and self times are of the first ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// `None` for a program that used no GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceProfile>,
    /// Operators on the host by their own time, without what they call; the costliest first.
    #[serde(default)]
    pub operators: Vec<NamedTime>,
    /// Operators called, whatever their cost.
    #[serde(default)]
    pub operator_calls: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceProfile {
    pub kernels: u64,
    /// Time in which at least one kernel or copy ran.
    pub busy_ms: f64,
    /// The kernels' own times added up; several can run at once.
    pub kernel_ms: f64,
    /// Matrix products, convolutions, attention; and those of them that use tensor cores, by the kernels' names.
    pub matrix_ms: f64,
    pub tensor_core_ms: f64,
    pub idle: Idle,
    pub copies: Vec<Copy>,
    /// The costliest kernels.
    pub top: Vec<NamedTime>,
}

/// Why nothing ran on the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Idle {
    /// The host had not launched the next kernel yet.
    pub host_ms: f64,
    /// … because it was waiting for a batch.
    pub data_ms: f64,
    /// … because it had waited for the device to finish everything.
    pub sync_ms: f64,
    /// The next kernel was already launched: its own start, or a dependency.
    pub queued_ms: f64,
}

/// Copies of one direction and one kind of host memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Copy {
    /// `HtoD`, `DtoH`, `DtoD` …
    pub direction: String,
    /// `pageable`, `pinned`, `device`, or `unknown`: that of the host's side.
    pub memory: String,
    pub count: u64,
    pub bytes: u64,
    pub ms: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NamedTime {
    pub name: String,
    pub count: u64,
    pub ms: f64,
}

impl Profile {
    /// A part of the profiled time.
    pub fn share(&self, ms: f64) -> f64 {
        if self.span_ms > 0.0 {
            (ms / self.span_ms).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

impl DeviceProfile {
    /// Of the matrix kernels' time, what ran on tensor cores; `None` without such kernels.
    pub fn tensor_core_share(&self) -> Option<f64> {
        (self.matrix_ms > 0.0).then(|| (self.tensor_core_ms / self.matrix_ms).clamp(0.0, 1.0))
    }
}
