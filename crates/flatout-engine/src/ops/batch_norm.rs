//! Batch normalisation over the last dimension, with a fused activation.

mod cpu;
mod cuda;
mod shape;

pub use shape::BatchNorm;
