//! Element by element.

use super::Activate;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Activate {
    fn kernels() -> &'static str {
        include_str!("activate.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let count = io.values(0);
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.output(0)),
            Argument::Long(count as i64),
            Argument::Word(self.activation.code()),
        ];
        io.machine.each("activate_forward", count, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let count = io.values(0);
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.output(0)),
            Argument::Address(target),
            Argument::Long(count as i64),
            Argument::Word(self.activation.code()),
            Argument::Word(i32::from(add)),
        ];
        io.machine.each("activate_backward", count, &arguments)
    }
}
