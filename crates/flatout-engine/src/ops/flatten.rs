//! Images as rows, in PyTorch's order.

mod cpu;
mod shape;

pub use shape::Flatten;

impl crate::cuda::io::CudaOperation for Flatten {}
