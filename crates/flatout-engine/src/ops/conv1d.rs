//! A causal convolution over time.

mod cpu;
mod cuda;
mod shape;

pub use shape::{Causal, Conv1d};
