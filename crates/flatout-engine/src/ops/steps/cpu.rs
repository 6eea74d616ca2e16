//! Two loops: add up over the steps, or spread over them. Each way's backward is the other's forward.

use super::Steps;
use super::shape::Way;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Steps {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        match self.way {
            Way::Repeat => self.spread(io, &io.input(0), &mut io.output(0), false),
            Way::Mean => self.sum(io, &io.input(0), &mut io.output(0), false),
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        match self.way {
            Way::Repeat => self.sum(io, &gradient, &mut target, accumulate),
            Way::Mean => self.spread(io, &gradient, &mut target, accumulate),
        }
    }
}

impl Steps {
    fn factor<T: Real>(&self) -> T {
        match self.way {
            Way::Repeat => T::ONE,
            Way::Mean => T::of(1.0 / self.steps.max(1) as f64),
        }
    }

    fn sum<T: Real>(&self, io: &Io<T>, source: &[T], target: &mut [T], accumulate: bool) {
        let (factor, target) = (self.factor::<T>(), Parts::new(target));
        io.pool().run(&|worker| {
            let range = io.pool().share(worker, self.values, 64);
            // SAFETY: shares do not overlap.
            let target = unsafe { target.part(range.clone()) };
            for (place, target) in range.zip(target) {
                let mut sum = T::ZERO;
                for step in 0..self.steps {
                    sum += source[step * self.values + place];
                }
                let value = sum * factor;
                *target = if accumulate { *target + value } else { value };
            }
        });
    }

    fn spread<T: Real>(&self, io: &Io<T>, source: &[T], target: &mut [T], accumulate: bool) {
        let (factor, target) = (self.factor::<T>(), Parts::new(target));
        io.pool().run(&|worker| {
            for step in io.pool().share(worker, self.steps, 1) {
                // SAFETY: each step belongs to one worker.
                let target = unsafe { target.part(step * self.values..(step + 1) * self.values) };
                for (target, &value) in target.iter_mut().zip(source) {
                    let value = value * factor;
                    *target = if accumulate { *target + value } else { value };
                }
            }
        });
    }
}
