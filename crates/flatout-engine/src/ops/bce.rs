//! Binary cross-entropy of logits.

mod cpu;
mod shape;

pub use shape::Bce;

impl crate::cuda::io::CudaOperation for Bce {}
