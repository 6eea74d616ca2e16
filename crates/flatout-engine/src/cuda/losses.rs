//! What the losses over single values share; the kernels' half is in kernels/common.cu.

use super::driver::Argument;
use super::error::CudaError;
use super::io::Io;

/// The mean over the valid rows. One block: predictions are few beside the rest of a step.
pub(crate) fn elementwise_mean(
    io: &Io,
    kernel: &str,
    width: usize,
    more: &[Argument],
) -> Result<(), CudaError> {
    let mut arguments = vec![
        Argument::Address(io.input(0)),
        Argument::Address(io.input(1)),
        Argument::Address(io.output(0)),
        Argument::Word(width as i32),
        io.control(),
    ];
    arguments.extend_from_slice(more);
    io.machine.blocks(kernel, (1, 1), 1024, &arguments)
}

pub(crate) fn elementwise_gradient(
    io: &Io,
    kernel: &str,
    rows: usize,
    width: usize,
    more: &[Argument],
) -> Result<(), CudaError> {
    let Some((gradient, add)) = io.input_gradient(0) else {
        return Ok(());
    };
    let total = rows * width;
    let mut arguments = vec![
        Argument::Address(io.input(0)),
        Argument::Address(io.input(1)),
        Argument::Address(gradient),
        Argument::Long(total as i64),
        Argument::Word(width as i32),
        io.control(),
        io.results(),
        Argument::Word(i32::from(add)),
    ];
    arguments.extend_from_slice(more);
    io.machine.each(kernel, total, &arguments)
}
