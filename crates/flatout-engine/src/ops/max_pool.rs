//! The largest value under a window.

mod cpu;
mod cuda;
mod shape;

pub(crate) use cuda::LARGEST;
pub use shape::MaxPool;
