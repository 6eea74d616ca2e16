//! One pass over the predictions.

use super::Huber;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::losses::{elementwise_gradient, elementwise_mean};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Huber {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (delta, half) = (T::of(self.delta), T::of(0.5));
        elementwise_mean(io, self.width, |prediction: T, target: T| {
            let error = (prediction - target).absolute();
            if error > delta {
                delta * (error - half * delta)
            } else {
                half * error * error
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let delta = T::of(self.delta);
        elementwise_gradient(io, self.width, |prediction: T, target: T| {
            let error = prediction - target;
            if error > delta {
                delta
            } else if error < -delta {
                -delta
            } else {
                error
            }
        });
    }
}
