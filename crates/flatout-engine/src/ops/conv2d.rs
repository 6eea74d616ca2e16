//! Two-dimensional convolution with bias and activation, channels-last.

mod cpu;
mod patches;
mod shape;

pub use shape::{Conv2d, Window};

impl crate::cuda::io::CudaOperation for Conv2d {}
