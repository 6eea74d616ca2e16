//! Layer normalization over the last dimension.

mod cpu;
mod cuda;
mod shape;

pub use shape::LayerNorm;
