//! The mask is drawn twice instead of kept.

use super::Dropout;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};

impl CudaOperation for Dropout {
    fn kernels() -> &'static str {
        include_str!("dropout.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let rate = if io.training { self.rate } else { 0.0 };
        drop(io, rate, io.input(0), io.output(0), false)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        match (io.output_gradient(0), io.input_gradient(0)) {
            (Some(gradient), Some((target, add))) => drop(io, self.rate, gradient, target, add),
            _ => Ok(()),
        }
    }
}

fn drop(io: &Io, rate: f64, source: u64, target: u64, add: bool) -> Result<(), CudaError> {
    let count = io.values(0);
    let [purpose, threshold, scale] = io.dropout(0, rate);
    let arguments = [
        Argument::Address(source),
        Argument::Address(target),
        Argument::Long(count as i64),
        purpose,
        threshold,
        scale,
        io.control(),
        Argument::Word(i32::from(add)),
    ];
    io.machine.each("dropout", count, &arguments)
}
