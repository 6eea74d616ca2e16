//! The verdict at the end of a run: how busy, how steady, how hot, how long throttled, with a threshold for every number.
//!
//! It is gathered sample by sample in constant memory, because a monitor may run for days. What could not be read stays
//! unknown; the time a GPU was not heard of counts for nothing.

mod clock;
mod dips;
mod distribution;
mod gather;
mod gpu;
mod host;
mod mark;
mod note;

pub use dips::Dips;
pub use distribution::{Distribution, Spread};
pub use gather::Gatherer;
pub use gpu::utilisation_of_tick;
pub use mark::{Aspect, Mark, Status, Unit, costs_speed};
pub use note::Note;

use flatout_record::{RunInfo, Sample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the verdict's JSON form.
pub const SCHEMA: u32 = 1;

/// Ratios are 0 to 1, as in the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    pub schema: u32,
    /// From the first sample to the last, with the time that each stands for.
    pub duration_s: f64,
    pub ticks: u64,
    /// Time without samples: the machine slept, or the sampler could not keep up.
    pub missed_s: f64,
    pub gpus: BTreeMap<u32, GpuVerdict>,
    pub host: HostVerdict,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuVerdict {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// GPM's means: the share of time in which SMs, tensor cores, device memory had work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_activity: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_activity: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_activity: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// Whether the GPU says at all why its clocks are down; without it throttling is unknown.
    pub throttle_known: bool,
    /// Seconds by reason, `idle` left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub throttle_s: BTreeMap<String, f64>,
    pub marks: Vec<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Utilisation {
    #[serde(flatten)]
    pub spread: Spread,
    /// Shares of the time.
    pub below_10: f64,
    pub below_50: f64,
    pub below_85: f64,
    pub dips: Dips,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Power {
    pub mean_w: f64,
    pub max_w: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_w: Option<f64>,
    /// Mean power by the limit in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Memory {
    pub peak_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Temperature {
    pub mean_c: f64,
    pub max_c: f64,
    /// Where the GPU slows itself down, by its own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_c: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Energy {
    pub joules: f64,
    /// By the GPU's own counter; else summed up from power readings.
    pub counted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostVerdict {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Spread>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iowait_mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_mean_bytes_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_busy_mean: Option<f64>,
}

impl Verdict {
    /// The verdict of samples that are all there already.
    pub fn of<'a>(info: &RunInfo, samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut gatherer = Gatherer::new(info);
        samples.into_iter().for_each(|sample| gatherer.add(sample));
        gatherer.verdict()
    }

    /// The aspects that are not good on some GPU; what is unknown does not count.
    pub fn faults(&self) -> Vec<(u32, &Mark)> {
        let marks = self
            .gpus
            .iter()
            .flat_map(|(index, gpu)| gpu.marks.iter().map(|mark| (*index, mark)));
        marks
            .filter(|(_, mark)| matches!(mark.status, Status::Warning | Status::Bad))
            .collect()
    }
}

#[cfg(test)]
mod tests;
