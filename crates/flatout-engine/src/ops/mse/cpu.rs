//! One pass over the predictions; they are few beside the rest of the step, so one thread does it.

use super::Mse;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::losses::{elementwise_gradient, elementwise_mean};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Mse {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        elementwise_mean(io, self.width, |prediction: T, target: T| {
            (prediction - target) * (prediction - target)
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        elementwise_gradient(io, self.width, |prediction: T, target: T| {
            (prediction - target) + (prediction - target)
        });
    }
}
