//! What this machine can do at most, measured: the ceilings that a training cannot pass. Each takes a second or two.
//!
//! - [`cpu`]: cores that are really there to use, and their products; [`memory`]: copies; [`disk`]: reads, cold and warm.
//! - [`gpu`]: products in each precision, the card's own memory, copies to it, and what a launch costs.
//!
//! Nothing here judges: the numbers are told, others compare them.

pub mod cpu;
pub mod disk;
pub mod gpu;
pub mod memory;

use serde::{Deserialize, Serialize};

/// One measured number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// `cpu.f32`, `gpu.0.memory` …; never changes.
    pub id: String,
    pub value: f64,
    /// `GFLOP/s`, `GB/s`, `µs`, `CPUs`.
    pub unit: String,
}

impl Ceiling {
    fn new(id: impl Into<String>, value: f64, unit: &str) -> Self {
        Self {
            id: id.into(),
            value,
            unit: unit.to_owned(),
        }
    }
}
