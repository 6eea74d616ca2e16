//! One pass forward; backward a sum over the rows of each step, and a copy where the input has other readers.

use super::Positions;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};
use crate::ops::residual::pass_gradient;

impl CudaOperation for Positions {
    fn kernels() -> &'static str {
        include_str!("positions.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.master(0)),
            Argument::Address(io.output(0)),
            Argument::Word(self.steps as i32),
            Argument::Long(self.batch as i64),
            Argument::Word(self.width as i32),
        ];
        io.machine.each(
            "positions_forward",
            self.steps * self.batch * self.width,
            &arguments,
        )
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        io.machine.aside(|| {
            let arguments = [
                Argument::Address(gradient),
                Argument::Address(io.parameter_gradient(0)),
                Argument::Long(self.batch as i64),
                Argument::Word(self.width as i32),
            ];
            let grid = (self.width.div_ceil(32), self.steps);
            io.machine.blocks("positions_table", grid, 1024, &arguments)
        })?;
        pass_gradient(io, gradient, 0, [io.input_gradient(0), None])
    }
}
