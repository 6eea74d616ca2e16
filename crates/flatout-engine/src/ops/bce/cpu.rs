//! One pass over the logits, in the form that cannot overflow.

use super::Bce;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::losses::{elementwise_gradient, elementwise_mean};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Bce {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        elementwise_mean(io, self.width, |logit: T, target: T| {
            let rest = (T::ONE + (-logit.absolute()).exponential::<false>()).logarithm();
            logit.larger(T::ZERO) - logit * target + rest
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        elementwise_gradient(io, self.width, |logit: T, target: T| {
            logit.sigmoid::<false>() - target
        });
    }
}
