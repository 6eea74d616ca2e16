//! Tensors side by side along the last dimension.

mod cpu;
mod shape;

pub use shape::Concat;
