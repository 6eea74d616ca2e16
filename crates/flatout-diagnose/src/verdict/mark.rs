//! A mark for each aspect of a GPU's run: the number, the threshold beside it, and what that makes it.

use super::GpuVerdict;
use serde::{Deserialize, Serialize};

/// Seeds of the project and MLPerf Storage (90%) agree on this range for a GPU that is fed.
pub const UTILISATION_GOOD: f64 = 0.85;
const UTILISATION_BAD: f64 = 0.50;
/// Standard deviation in points; 20 to 30 is what teams call fluctuating.
const FLUCTUATION_GOOD: f64 = 10.0;
const FLUCTUATION_BAD: f64 = 20.0;
/// Mean power by the limit. A GPU that does arithmetic all the time comes close to its limit.
const POWER_GOOD: f64 = 0.80;
const POWER_BAD: f64 = 0.50;
const TEMPERATURE_GOOD_C: f64 = 85.0;
/// Where the GPU does not say at which temperature it slows down.
const TEMPERATURE_BAD_C: f64 = 92.0;
/// Above this, one larger batch ends the run; the second figure is nearly there.
const MEMORY_GOOD: f64 = 0.92;
const MEMORY_BAD: f64 = 0.97;
/// Share of the time held back by heat or by the hardware; the power cap is counted apart, it is normal at full load.
const THROTTLE_GOOD: f64 = 0.01;
const THROTTLE_BAD: f64 = 0.10;
/// Fewer ticks are shown but not judged.
const FEWEST_TICKS: u64 = 5;

/// The reason of a GPU that has nothing to do.
pub const IDLE: &str = "idle";
/// Reasons that cost no speed, or that somebody chose.
const HARMLESS: [&str; 3] = ["applications-clocks", "sync-boost", "display-clocks"];
/// At its power limit: what full load looks like.
pub const POWER_CAP: &str = "power-cap";

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    Utilisation,
    Fluctuation,
    Power,
    Temperature,
    Memory,
    Throttling,
}

impl Aspect {
    pub const ALL: [Self; 6] = [
        Self::Utilisation,
        Self::Fluctuation,
        Self::Power,
        Self::Temperature,
        Self::Memory,
        Self::Throttling,
    ];

    /// The name of its fault, for `--fail-on`.
    pub fn fault(self) -> &'static str {
        match self {
            Self::Utilisation => "low-utilization",
            Self::Fluctuation => "fluctuating",
            Self::Power => "low-power",
            Self::Temperature => "hot",
            Self::Memory => "memory-full",
            Self::Throttling => "throttled",
        }
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Good,
    Warning,
    Bad,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mark {
    pub aspect: Aspect,
    pub status: Status,
    /// In `unit`; absent when it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Good is on this side of it: see `at_least`.
    pub threshold: f64,
    /// Good is at or above the threshold; else below it.
    pub at_least: bool,
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// 0 to 1.
    Ratio,
    Points,
    Celsius,
}

impl Mark {
    fn above(aspect: Aspect, value: Option<f64>, good: f64, bad: f64) -> Self {
        let status = value.map_or(Status::Unknown, |value| match value {
            value if value >= good => Status::Good,
            value if value >= bad => Status::Warning,
            _ => Status::Bad,
        });
        Self {
            aspect,
            status,
            value,
            threshold: good,
            at_least: true,
            unit: Unit::Ratio,
        }
    }

    fn below(aspect: Aspect, value: Option<f64>, good: f64, bad: f64, unit: Unit) -> Self {
        let status = value.map_or(Status::Unknown, |value| match value {
            value if value < good => Status::Good,
            value if value < bad => Status::Warning,
            _ => Status::Bad,
        });
        Self {
            aspect,
            status,
            value,
            threshold: good,
            at_least: false,
            unit,
        }
    }
}

/// All marks of a GPU, in the order of [`Aspect::ALL`].
pub fn marks(gpu: &GpuVerdict, known_s: f64, ticks: u64) -> Vec<Mark> {
    let utilisation = gpu.utilisation.as_ref().map(|utilisation| utilisation.spread);
    let hot_c = gpu
        .temperature
        .and_then(|temperature| temperature.slowdown_c)
        .filter(|limit| *limit > TEMPERATURE_GOOD_C);
    let memory = gpu.memory.and_then(|memory| {
        let total = memory.total_bytes.filter(|total| *total > 0)?;
        Some(memory.peak_bytes as f64 / total as f64)
    });
    let mut marks = vec![
        Mark::above(
            Aspect::Utilisation,
            utilisation.map(|spread| spread.mean),
            UTILISATION_GOOD,
            UTILISATION_BAD,
        ),
        Mark::below(
            Aspect::Fluctuation,
            // One reading has no spread.
            utilisation
                .filter(|spread| spread.count > 1)
                .map(|spread| spread.std * 100.0),
            FLUCTUATION_GOOD,
            FLUCTUATION_BAD,
            Unit::Points,
        ),
        Mark::above(
            Aspect::Power,
            gpu.power.and_then(|power| power.of_limit),
            POWER_GOOD,
            POWER_BAD,
        ),
        Mark::below(
            Aspect::Temperature,
            gpu.temperature.map(|temperature| temperature.max_c),
            TEMPERATURE_GOOD_C,
            hot_c.unwrap_or(TEMPERATURE_BAD_C),
            Unit::Celsius,
        ),
        Mark::below(Aspect::Memory, memory, MEMORY_GOOD, MEMORY_BAD, Unit::Ratio),
        Mark::below(
            Aspect::Throttling,
            held_back(gpu, known_s),
            THROTTLE_GOOD,
            THROTTLE_BAD,
            Unit::Ratio,
        ),
    ];
    if ticks < FEWEST_TICKS {
        marks.iter_mut().for_each(|mark| mark.status = Status::Unknown);
    }
    marks
}

/// The share of time in which heat or the hardware held the clocks down.
fn held_back(gpu: &GpuVerdict, known_s: f64) -> Option<f64> {
    if !gpu.throttle_known || known_s <= 0.0 {
        return None;
    }
    // Reasons overlap (a hardware slowdown is thermal at the same time), so the longest counts, not the sum.
    let harmful = gpu.throttle_s.iter().filter(|(reason, _)| costs_speed(reason));
    Some((harmful.map(|(_, seconds)| *seconds).fold(0.0, f64::max) / known_s).min(1.0))
}

pub fn costs_speed(reason: &str) -> bool {
    reason != POWER_CAP && reason != IDLE && !HARMLESS.contains(&reason)
}
