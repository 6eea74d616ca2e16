//! One block makes the sum, in a fixed order.

use super::Bce;
use crate::cuda::CudaError;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::losses::{elementwise_gradient, elementwise_mean};

impl CudaOperation for Bce {
    fn kernels() -> &'static str {
        include_str!("bce.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_mean(io, "bce_forward", self.width, &[])
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_gradient(io, "bce_backward", self.rows, self.width, &[])
    }
}
