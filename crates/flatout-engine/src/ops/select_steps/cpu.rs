//! Copies whole steps.

use super::SelectSteps;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for SelectSteps {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        for (step, target) in output.chunks_exact_mut(self.values).enumerate() {
            target.copy_from_slice(&input[self.source(step) * self.values..][..self.values]);
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        if !accumulate {
            target.fill(T::ZERO);
        }
        for (step, gradient) in gradient.chunks_exact(self.values).enumerate() {
            let target = &mut target[self.source(step) * self.values..][..self.values];
            target
                .iter_mut()
                .zip(gradient)
                .for_each(|(sum, &value)| *sum += value);
        }
    }
}
