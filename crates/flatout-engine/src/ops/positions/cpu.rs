//! Step by step.

use super::Positions;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Positions {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, table, mut output) = (io.input(0), io.parameter(0), io.output(0));
        let (values, width) = (self.batch * self.width, self.width);
        let target = Parts::new(&mut output);
        io.pool().run(&|worker| {
            for step in io.pool().share(worker, self.steps, 1) {
                let range = step * values..(step + 1) * values;
                // SAFETY: each step belongs to one worker.
                let target = unsafe { target.part(range.clone()) };
                let own = &table[step * width..][..width];
                let rows = target
                    .chunks_exact_mut(width)
                    .zip(input[range].chunks_exact(width));
                for (target, row) in rows {
                    for ((target, &value), &own) in target.iter_mut().zip(row).zip(own) {
                        *target = value + own;
                    }
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let (values, width) = (self.batch * self.width, self.width);
        let mut table = io.parameter_gradient(0);
        let table = Parts::new(&mut table);
        io.pool().run(&|worker| {
            for step in io.pool().share(worker, self.steps, 1) {
                // SAFETY: each step belongs to one worker.
                let own = unsafe { table.part(step * width..(step + 1) * width) };
                for row in gradient[step * values..][..values].chunks_exact(width) {
                    own.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
                }
            }
        });
        if let Some((mut target, accumulate)) = io.input_gradient(0) {
            for (target, &value) in target.iter_mut().zip(&*gradient) {
                *target = if accumulate { *target + value } else { value };
            }
        }
    }
}
