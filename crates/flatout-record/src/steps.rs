//! Training steps, summed up tick by tick. The probe in a PyTorch program and our own trainer write the same phases, so one set
//! of rules serves both.

use flatout_core::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the main thread's wall time goes. The phases partition it: they add up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for the batch.
    Data,
    /// Copying it to the device.
    Transfer,
    /// Dispatching work to the device, or computing on the CPU.
    Compute,
    /// Blocked until the device has finished.
    Sync,
    Eval,
    Checkpoint,
    Other,
}

impl Phase {
    pub const ALL: [Self; 7] = [
        Self::Data,
        Self::Transfer,
        Self::Compute,
        Self::Sync,
        Self::Eval,
        Self::Checkpoint,
        Self::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Transfer => "transfer",
            Self::Compute => "compute",
            Self::Sync => "sync",
            Self::Eval => "eval",
            Self::Checkpoint => "checkpoint",
            Self::Other => "other",
        }
    }
}

/// The time in one phase: its sum, and how it was spread over the steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseTime {
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub hist: Histogram,
}

/// The steps that ended within one tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepTick {
    /// End of the tick, seconds since the start.
    pub t: f64,
    /// Length of the tick; the phases of a steady tick add up to it.
    pub dt: f64,
    /// Optimizer steps.
    pub steps: u64,
    /// Samples that went into them, where the batch size is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Time the device was busy with them, where it was measured; beside the phases, not one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<Phase, PhaseTime>,
    /// Wall time from step to step.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub step_hist: Histogram,
    /// The last loss that the program itself read, so that reading it costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

impl StepTick {
    pub fn phase_ms(&self, phase: Phase) -> f64 {
        self.phases.get(&phase).map_or(0.0, |time| time.ms)
    }
}
