//! Multi-head self-attention over a sequence.

mod cpu;
mod cuda;
mod shape;

pub use shape::Attention;
