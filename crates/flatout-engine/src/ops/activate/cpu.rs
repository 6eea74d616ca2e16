//! Element by element.

use super::Activate;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

/// Elements done together, so that a piece stays in the cache between copy and activation.
const PIECE: usize = 2048;

impl<T: Real> CpuOperation<T> for Activate {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let target = Parts::new(&mut output);
        io.pool().run(&|worker| {
            let mine = io.pool().share(worker, input.len(), PIECE);
            for start in mine.clone().step_by(PIECE) {
                let range = start..mine.end.min(start + PIECE);
                // SAFETY: shares do not overlap.
                let target = unsafe { target.part(range.clone()) };
                target.copy_from_slice(&input[range]);
                self.activation.apply(target);
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let result = io.result(0);
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
