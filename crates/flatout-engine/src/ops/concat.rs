//! Tensors side by side along the last dimension.

mod cpu;
mod cuda;
mod shape;

pub use shape::Concat;
pub(crate) use cuda::copy_columns;
