//! One copy forward, one sum back, eight channels per access.

use super::Upsample;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};
use crate::ops::residual::vector;

impl CudaOperation for Upsample {
    fn kernels() -> &'static str {
        include_str!("upsample.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let vector = vector(self.channels);
        let given = [Argument::Address(io.input(0)), Argument::Address(io.output(0))];
        let arguments = [&given[..], &self.sizes(vector)].concat();
        let name = format!("upsample_forward_{vector}");
        io.machine.each(&name, io.values(0) / vector, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let vector = vector(self.channels);
        let given = [Argument::Address(gradient), Argument::Address(target)];
        let add = [Argument::Word(i32::from(add))];
        let arguments = [&given[..], &self.sizes(vector), &add].concat();
        let threads = self.batch * self.height * self.width * self.channels / vector;
        io.machine
            .each(&format!("upsample_backward_{vector}"), threads, &arguments)
    }
}

impl Upsample {
    fn sizes(&self, vector: usize) -> [Argument; 6] {
        [
            Argument::Long(self.batch as i64),
            Argument::Word(self.height as i32),
            Argument::Word(self.width as i32),
            Argument::Word((self.channels / vector) as i32),
            Argument::Word(self.output_height as i32),
            Argument::Word(self.output_width as i32),
        ]
    }
}
