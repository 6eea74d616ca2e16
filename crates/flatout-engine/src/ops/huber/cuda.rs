//! One block makes the sum, in a fixed order.

use super::Huber;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::losses::{elementwise_gradient, elementwise_mean};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Huber {
    fn kernels() -> &'static str {
        include_str!("huber.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_mean(
            io,
            "huber_forward",
            self.width,
            &[Argument::Float(self.delta as f32)],
        )
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_gradient(
            io,
            "huber_backward",
            self.rows,
            self.width,
            &[Argument::Float(self.delta as f32)],
        )
    }
}
