//! Softmax row by row, shifted by the row's maximum.

use super::CrossEntropy;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

/// Σ e^(x − max), and max.
fn normaliser<T: Real>(row: &[T]) -> (T, T) {
    let largest = row.iter().fold(row[0], |largest, &value| value.larger(largest));
    let mut sum = T::ZERO;
    for &value in row {
        sum += (value - largest).exponential::<false>();
    }
    (sum, largest)
}

impl<T: Real> CpuOperation<T> for CrossEntropy {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (logits, target) = (io.input(0), io.input_indices(1));
        let count = io.context.valid_rows * self.answers;
        let mut total = 0.0;
        for (row, &class) in logits.chunks_exact(self.classes).zip(&*target).take(count) {
            let Some(&own) = usize::try_from(class).ok().and_then(|class| row.get(class)) else {
                return Err(EngineError::Index {
                    operation: "cross_entropy",
                    index: class.into(),
                    rows: self.classes,
                });
            };
            let (sum, largest) = normaliser(row);
            total += sum.to_f64().ln() + largest.to_f64() - own.to_f64();
        }
        io.output(0)[0] = T::of(total / count.max(1) as f64);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some((mut gradient, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let (logits, target) = (io.input(0), io.input_indices(1));
        let count = io.context.valid_rows * self.answers;
        let factor = T::of(io.context.loss_weight / count.max(1) as f64);
        if !accumulate {
            gradient.fill(T::ZERO);
        }
        let rows = logits
            .chunks_exact(self.classes)
            .zip(gradient.chunks_exact_mut(self.classes));
        for ((row, gradient), &class) in rows.zip(&*target).take(count) {
            let (sum, largest) = normaliser(row);
            for (index, (gradient, &value)) in gradient.iter_mut().zip(row).enumerate() {
                let share = (value - largest).exponential::<false>() / sum;
                let own = if index == class as usize { T::ONE } else { T::ZERO };
                *gradient += factor * (share - own);
            }
        }
    }
}
