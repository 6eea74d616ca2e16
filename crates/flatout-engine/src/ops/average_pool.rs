//! The mean over all pixels of an image.

mod cpu;
mod shape;

pub use shape::AveragePool;

impl crate::cuda::io::CudaOperation for AveragePool {}
