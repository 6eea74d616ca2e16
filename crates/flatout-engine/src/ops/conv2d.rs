//! Two-dimensional convolution with bias and activation, channels-last.

mod cpu;
mod cuda;
mod patches;
mod shape;

pub(crate) use cuda::examples;
pub use shape::{Conv2d, Window};
