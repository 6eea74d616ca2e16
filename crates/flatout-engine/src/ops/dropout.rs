//! Dropout.

mod cpu;
mod shape;

pub use shape::Dropout;

impl crate::cuda::io::CudaOperation for Dropout {}
