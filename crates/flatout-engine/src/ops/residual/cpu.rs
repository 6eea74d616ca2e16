//! Element by element.

use super::Residual;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

/// Elements done together, so that a piece stays in the cache between the sum and the activation.
const PIECE: usize = 2048;

impl<T: Real> CpuOperation<T> for Residual {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (a, b, mut output) = (io.input(0), io.input(1), io.output(0));
        let target = Parts::new(&mut output);
        io.pool().run(&|worker| {
            let mine = io.pool().share(worker, a.len(), PIECE);
            for start in mine.clone().step_by(PIECE) {
                let range = start..mine.end.min(start + PIECE);
                // SAFETY: shares do not overlap.
                let target = unsafe { target.part(range.clone()) };
                for ((target, &a), &b) in target.iter_mut().zip(&a[range.clone()]).zip(&b[range]) {
                    *target = a + b;
                }
                self.activation.apply(target);
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let result = io.result(0);
        for position in 0..2 {
            let Some((mut target, accumulate)) = io.input_gradient(position) else {
                continue;
            };
            let target = Parts::new(&mut target);
            io.pool().run(&|worker| {
                let mine = io.pool().share(worker, gradient.len(), PIECE);
                for start in mine.clone().step_by(PIECE) {
                    let range = start..mine.end.min(start + PIECE);
                    // SAFETY: shares do not overlap.
                    let target = unsafe { target.part(range.clone()) };
                    let mut piece = [T::ZERO; PIECE];
                    let piece = &mut piece[..range.len()];
                    self.activation
                        .gradient(piece, &gradient[range.clone()], &result[range]);
                    for (target, &value) in target.iter_mut().zip(&*piece) {
                        *target = if accumulate { *target + value } else { value };
                    }
                }
            });
        }
    }
}
