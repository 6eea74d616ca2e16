//! Batch normalisation over the last dimension, with a fused activation.

mod cpu;
mod shape;

pub use shape::BatchNorm;

impl crate::cuda::io::CudaOperation for BatchNorm {}
