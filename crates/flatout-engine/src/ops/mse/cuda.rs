//! One block makes the sum, in a fixed order.

use super::Mse;
use crate::cuda::CudaError;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::losses::{elementwise_gradient, elementwise_mean};

impl CudaOperation for Mse {
    fn kernels() -> &'static str {
        include_str!("mse.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_mean(io, "mse_forward", self.width, &[])
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        elementwise_gradient(io, "mse_backward", self.rows, self.width, &[])
    }
}
