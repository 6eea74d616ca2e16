//! Huber loss: squared near zero, linear beyond `delta`.

mod cpu;
mod shape;

pub use shape::Huber;

impl crate::cuda::io::CudaOperation for Huber {}
