//! `run.json`: what ran, where, on what, and how it ended.

use flatout_core::cpus::UsableCpus;
use flatout_core::{Message, message};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of the record's format. A reader takes this one and older ones.
pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunInfo {
    pub schema: u32,
    /// The folder's name, unless it was moved.
    pub id: String,
    pub name: String,
    /// What wrote it: `monitor`, `run`, `train`, `import`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Settings that were put in force without an edit: `loader.num_workers=8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Milliseconds since 1970 at `t = 0`.
    pub started_unix_ms: u64,
    /// Seconds between ticks, as asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostInfo>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<u32, GpuInfo>,
    /// `flatout`, `driver`, `cuda`, `python`, `torch` …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitInfo>,
    /// Why something could not be read, once a reason: `gpm: not supported by this GPU`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// How often the driver gave a value out of range: `gpu 0 util`. Shares were clamped, other values left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clamped: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostInfo {
    pub name: String,
    pub kernel: String,
    pub cpus: UsableCpus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Measured where processes are watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageInfo>,
}

/// A page of memory, and the CPU time to take a fresh one from the kernel and give it back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PageInfo {
    pub bytes: u64,
    pub us: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuInfo {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_total_bytes: Option<u64>,
    /// Major, minor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_max_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_clock_max_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_slowdown_c: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_shutdown_c: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_generation_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_width_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpm: Option<bool>,
}

/// The batch system's job around the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobInfo {
    pub system: String,
    pub id: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExitInfo {
    /// Seconds since the start.
    pub t: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ExitInfo {
    /// How it ended, where it did not end well.
    pub fn failure(&self) -> Option<Message> {
        match (self.code, self.signal) {
            (_, Some(signal)) => Some(message!(en: "signal {signal}", zh: "信号 {signal}")),
            // Without either it was not a program that ended: a monitor that stopped watching.
            (Some(0) | None, None) => None,
            (Some(code), None) => Some(message!(en: "exit code {code}", zh: "退出码 {code}")),
        }
    }
}
