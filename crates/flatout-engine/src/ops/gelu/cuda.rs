//! One pass each way, eight values per access.

use super::Gelu;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};
use crate::ops::residual::vector;

impl CudaOperation for Gelu {
    fn kernels() -> &'static str {
        include_str!("gelu.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let (values, vector) = (io.values(0), vector(io.values(0)));
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.output(0)),
            Argument::Long((values / vector) as i64),
        ];
        let name = format!("gelu_forward_{vector}");
        io.machine.each(&name, values / vector, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let (values, vector) = (io.values(0), vector(io.values(0)));
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.input(0)),
            Argument::Address(target),
            Argument::Long((values / vector) as i64),
            Argument::Word(i32::from(add)),
        ];
        let name = format!("gelu_backward_{vector}");
        io.machine.each(&name, values / vector, &arguments)
    }
}
