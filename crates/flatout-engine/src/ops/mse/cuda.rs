//! One block makes the sum, in a fixed order.

use super::Mse;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Mse {
    fn kernels() -> &'static str {
        include_str!("mse.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(io.output(0)),
            Argument::Word(self.width as i32),
            io.control(),
        ];
        io.machine.blocks("mse_forward", (1, 1), 1024, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some((gradient, add)) = io.input_gradient(0) else { return Ok(()) };
        let total = self.rows * self.width;
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(gradient),
            Argument::Long(total as i64),
            Argument::Word(self.width as i32),
            io.control(),
            Argument::Word(i32::from(add)),
        ];
        io.machine.each("mse_backward", total, &arguments)
    }
}
