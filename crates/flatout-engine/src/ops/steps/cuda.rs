//! Two kernels: add up over the steps, or spread over them. Each way's backward is the other's forward.

use super::Steps;
use super::shape::Way;
use crate::cuda::io::{CudaOperation, Io};
use crate::cuda::{Argument, CudaError};
use crate::ops::residual::vector;

impl CudaOperation for Steps {
    fn kernels() -> &'static str {
        include_str!("steps.cu")
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        self.launch(io, self.way, io.input(0), (io.output(0), false))
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let (Some(gradient), Some(target)) = (io.output_gradient(0), io.input_gradient(0)) else {
            return Ok(());
        };
        let back = match self.way {
            Way::Repeat => Way::Mean,
            Way::Mean => Way::Repeat,
        };
        self.launch(io, back, gradient, target)
    }
}

impl Steps {
    fn launch(&self, io: &Io, way: Way, source: u64, (target, add): (u64, bool)) -> Result<(), CudaError> {
        let vector = vector(self.values);
        let packs = self.values / vector;
        let factor = match self.way {
            Way::Repeat => 1.0,
            Way::Mean => 1.0 / self.steps.max(1) as f32,
        };
        let arguments = [
            Argument::Address(source),
            Argument::Address(target),
            Argument::Word(self.steps as i32),
            Argument::Long(packs as i64),
            Argument::Float(factor),
            Argument::Word(i32::from(add)),
        ];
        match way {
            Way::Mean => io.machine.each(&format!("sum_steps_{vector}"), packs, &arguments),
            Way::Repeat => {
                let threads = packs * self.steps;
                io.machine
                    .each(&format!("spread_steps_{vector}"), threads, &arguments)
            }
        }
    }
}
