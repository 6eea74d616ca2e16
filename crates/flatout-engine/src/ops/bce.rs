//! Binary cross-entropy of logits.

mod cpu;
mod cuda;
mod shape;

pub use shape::Bce;
