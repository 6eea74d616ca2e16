//! One copy each way, eight values per access.

use super::SelectSteps;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};
use crate::ops::residual::vector;

impl CudaOperation for SelectSteps {
    fn kernels() -> &'static str {
        include_str!("select_steps.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let vector = vector(self.values);
        let given = [Argument::Address(io.input(0)), Argument::Address(io.output(0))];
        let arguments = [&given[..], &self.sizes(vector)].concat();
        let threads = self.outputs * self.values / vector;
        io.machine
            .each(&format!("select_steps_forward_{vector}"), threads, &arguments)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some((target, add))) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let vector = vector(self.values);
        let given = [Argument::Address(gradient), Argument::Address(target)];
        let add = [Argument::Word(i32::from(add))];
        let arguments = [&given[..], &self.sizes(vector), &add].concat();
        let threads = self.steps * self.values / vector;
        io.machine
            .each(&format!("select_steps_backward_{vector}"), threads, &arguments)
    }
}

impl SelectSteps {
    fn sizes(&self, vector: usize) -> [Argument; 5] {
        [
            Argument::Word(self.steps as i32),
            Argument::Long((self.values / vector) as i64),
            Argument::Word(self.stride as i32),
            Argument::Word(self.outputs as i32),
            Argument::Word(i32::from(self.reversed)),
        ]
    }
}
