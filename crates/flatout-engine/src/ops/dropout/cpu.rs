//! The mask is drawn twice instead of kept.

use super::Dropout;
use crate::EngineError;
use crate::cpu::dropout::drop_into;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Dropout {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        drop_into(io, 0, self.rate, &io.input(0), &mut io.output(0), false);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        drop_into(io, 0, self.rate, &gradient, &mut target, accumulate);
    }
}
