//! One pass forward; backward the sums over the rows of each feature, and a warp per value where the input wants its gradient.

use super::Tokens;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Tokens {
    fn kernels() -> &'static str {
        include_str!("tokens.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.master(0)),
            Argument::Address(io.master(1)),
            Argument::Address(io.output(0)),
            Argument::Word(self.features as i32),
            Argument::Long(self.batch as i64),
            Argument::Word(self.width as i32),
        ];
        let values = self.features * self.batch * self.width;
        io.machine.each("tokens_forward", values, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let sizes = [
            Argument::Word(self.features as i32),
            Argument::Long(self.batch as i64),
            Argument::Word(self.width as i32),
        ];
        io.machine.aside(|| {
            let addresses = [
                Argument::Address(gradient),
                Argument::Address(io.input(0)),
                Argument::Address(io.parameter_gradient(0)),
                Argument::Address(io.parameter_gradient(1)),
            ];
            let grid = (self.width.div_ceil(32), self.features);
            let arguments = [&addresses[..], &sizes].concat();
            io.machine.blocks("tokens_parameters", grid, 1024, &arguments)
        })?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let addresses = [
            Argument::Address(gradient),
            Argument::Address(io.master(0)),
            Argument::Address(target),
        ];
        let last = [Argument::Word(i32::from(add))];
        let arguments = [&addresses[..], &sizes, &last].concat();
        let grid = ((self.batch * self.features).div_ceil(8), 1);
        io.machine.blocks("tokens_inputs", grid, 256, &arguments)
    }
}
