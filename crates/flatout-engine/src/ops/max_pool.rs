//! The largest value under a window.

mod cpu;
mod shape;

pub use shape::MaxPool;

impl crate::cuda::io::CudaOperation for MaxPool {}
