//! Row by row; the gradients of weight and bias are sums over rows, in an order that follows from the sizes.

use super::LayerNorm;
use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;

/// Positions in the scratch: mean and 1/deviation of each row, then gradient · x̂.
const MOMENTS: usize = 0;
const SCALED: usize = 1;

impl<T: Real> CpuOperation<T> for LayerNorm {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        vec![2 * self.rows, self.rows * self.width]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, weight, bias) = (io.input(0), io.parameter(0), io.parameter(1));
        let (mut output, mut moments) = (io.output(0), io.scratch(MOMENTS));
        let (output, moments) = (Parts::new(&mut output), Parts::new(&mut moments));
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.rows, 1) {
                let range = row * self.width..(row + 1) * self.width;
                let values = &input[range.clone()];
                // SAFETY: each row belongs to one worker.
                let (target, moments) = unsafe { (output.part(range), moments.part(2 * row..2 * row + 2)) };
                let (mean, scale) = self.moments(values);
                (moments[0], moments[1]) = (mean, scale);
                for (j, (target, &value)) in target.iter_mut().zip(values).enumerate() {
                    *target = (value - mean) * scale * weight[j] + bias[j];
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let (input, weight, moments) = (io.input(0), io.parameter(0), io.scratch_result(MOMENTS));
        let mut scaled = io.scratch(SCALED);
        let wanted = io.input_gradient(0);
        let accumulate = wanted.as_ref().is_some_and(|(_, accumulate)| *accumulate);
        let mut target = wanted.map(|(target, _)| target);
        let target = target.as_mut().map(|target| Parts::new(target));
        let (width, share) = (self.width, T::of(1.0 / self.width as f64));
        let parts = Parts::new(&mut scaled);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.rows, 1) {
                let range = row * width..(row + 1) * width;
                let (mean, scale) = (moments[2 * row], moments[2 * row + 1]);
                let (values, gradient) = (&input[range.clone()], &gradient[range.clone()]);
                // SAFETY: each row belongs to one worker.
                let scaled = unsafe { parts.part(range.clone()) };
                let (mut first, mut second) = (T::ZERO, T::ZERO);
                for j in 0..width {
                    scaled[j] = gradient[j] * ((values[j] - mean) * scale);
                    first += gradient[j] * weight[j];
                    second += scaled[j] * weight[j];
                }
                let Some(target) = &target else { continue };
                // SAFETY: as above.
                let target = unsafe { target.part(range) };
                for j in 0..width {
                    let hat = (values[j] - mean) * scale;
                    let value = scale * (gradient[j] * weight[j] - share * (first + hat * second));
                    target[j] = if accumulate { target[j] + value } else { value };
                }
            }
        });
        add_columns(
            io.pool(),
            &scaled,
            self.rows,
            width,
            &mut io.parameter_gradient(0),
        );
        add_columns(
            io.pool(),
            &gradient,
            self.rows,
            width,
            &mut io.parameter_gradient(1),
        );
    }
}

impl LayerNorm {
    /// Mean and 1/deviation of a row.
    fn moments<T: Real>(&self, values: &[T]) -> (T, T) {
        let count = self.width as f64;
        let mean = values.iter().map(|value| value.to_f64()).sum::<f64>() / count;
        let square = |value: &T| (value.to_f64() - mean) * (value.to_f64() - mean);
        let spread = values.iter().map(square).sum::<f64>() / count;
        (T::of(mean), T::of(1.0 / (spread + self.epsilon).sqrt()))
    }
}
