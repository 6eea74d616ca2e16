//! An activation that is not fused behind another operation.

mod cpu;
mod shape;

pub use shape::Activate;

impl crate::cuda::io::CudaOperation for Activate {}
