//! Cross-entropy of logits against class numbers.

mod cpu;
mod shape;

pub use shape::CrossEntropy;

impl crate::cuda::io::CudaOperation for CrossEntropy {}
