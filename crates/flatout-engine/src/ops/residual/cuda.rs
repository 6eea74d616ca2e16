//! One pass each way, eight values per access.

use super::Residual;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

/// Values per access: how many of them divide the tensor.
pub(crate) fn vector(values: usize) -> usize {
    if values.is_multiple_of(8) { 8 } else { 1 }
}

impl CudaOperation for Residual {
    fn kernels() -> &'static str {
        include_str!("residual.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let (values, vector) = (io.values(0), vector(io.values(0)));
        let arguments = [
            Argument::Address(io.input(0)),
            Argument::Address(io.input(1)),
            Argument::Address(io.output(0)),
            Argument::Long((values / vector) as i64),
            Argument::Word(self.activation.code()),
        ];
        let name = format!("residual_sum_{vector}");
        io.machine.each(&name, values / vector, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let wanted = [io.input_gradient(0), io.input_gradient(1)];
        pass_gradient(io, gradient, self.activation.code(), wanted)
    }
}

/// Sends the gradient before an activation (0 for none) to one or two targets, writing or adding.
pub(crate) fn pass_gradient(
    io: &Io,
    gradient: u64,
    activation: i32,
    wanted: [Option<(u64, bool)>; 2],
) -> Result<(), CudaError> {
    let (Some((target, add)), second) = (wanted[0].or(wanted[1]), wanted[0].and(wanted[1])) else {
        return Ok(());
    };
    let (second, add_second) = second.unwrap_or_default();
    let (values, vector) = (io.values(0), vector(io.values(0)));
    let arguments = [
        Argument::Address(gradient),
        Argument::Address(io.output(0)),
        Argument::Address(target),
        Argument::Address(second),
        Argument::Long((values / vector) as i64),
        Argument::Word(activation),
        Argument::Word(i32::from(add)),
        Argument::Word(i32::from(add_second)),
    ];
    let name = format!("residual_gradient_{vector}");
    io.machine.each(&name, values / vector, &arguments)
}
