//! Statistics in pieces of fixed size, each by one worker, added in the order of the pieces.

use super::BatchNorm;
use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;

/// Rows of a piece.
const PIECE: usize = 1024;

/// Positions in the scratch: sums of the pieces, then mean and 1/deviation of this batch, then the gradient before the
/// activation.
const SUMS: usize = 0;
const MOMENTS: usize = 1;
const BEFORE: usize = 2;

vectorised! {
    /// Σ (x − shift) and Σ (x − shift)² of each channel.
    fn moments<T>(rows: &[T], shift: &[T], sums: &mut [T]) {
        let channels = shift.len();
        let (first, second) = sums.split_at_mut(channels);
        let second = &mut second[..channels];
        for row in rows.chunks_exact(channels) {
            for j in 0..channels {
                let value = row[j] - shift[j];
                first[j] += value;
                second[j] = value.multiply_add::<FUSED>(value, second[j]);
            }
        }
    }
}

vectorised! {
    /// Σ g and Σ g · x̂ of each channel.
    fn gradients<T>(gradient: &[T], rows: &[T], moments: &[T], sums: &mut [T]) {
        let channels = moments.len() / 2;
        let (mean, scale) = moments.split_at(channels);
        let scale = &scale[..channels];
        let (first, second) = sums.split_at_mut(channels);
        let second = &mut second[..channels];
        for (row, gradient) in rows.chunks_exact(channels).zip(gradient.chunks_exact(channels)) {
            for j in 0..channels {
                first[j] += gradient[j];
                second[j] = (gradient[j] * (row[j] - mean[j])).multiply_add::<FUSED>(scale[j], second[j]);
            }
        }
    }
}

impl<T: Real> CpuOperation<T> for BatchNorm {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        let pieces = self.rows.div_ceil(PIECE);
        vec![
            (pieces + 1) * 2 * self.channels,
            2 * self.channels,
            self.rows * self.channels,
        ]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let input = io.input(0);
        self.statistics(io, &input);
        let (weight, bias, moments) = (io.parameter(0), io.parameter(1), io.scratch_result(MOMENTS));
        let mut output = io.output(0);
        let (channels, target) = (self.channels, Parts::new(&mut output));
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.rows, 1) {
                let range = row * channels..(row + 1) * channels;
                // SAFETY: each row belongs to one worker.
                let target = unsafe { target.part(range.clone()) };
                for (j, (target, &value)) in target.iter_mut().zip(&input[range]).enumerate() {
                    *target = (value - moments[j]) * moments[channels + j] * weight[j] + bias[j];
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
        let (result, input) = (io.result(0), io.input(0));
        let (mut before, mut sums) = (io.scratch(BEFORE), io.scratch(SUMS));
        let moments = io.scratch_result(MOMENTS);
        let (channels, values) = (self.channels, Parts::new(&mut before));
        self.piecewise(io, &mut sums, &|range, sums| {
            // SAFETY: each piece belongs to one worker.
            let before = unsafe { values.part(range.clone()) };
            self.activation
                .gradient(before, &gradient[range.clone()], &result[range.clone()]);
            gradients(before, &input[range], &moments, sums);
        });
        let total = &sums[..2 * channels];
        for (target, sum) in io.parameter_gradient(1).iter_mut().zip(&total[..channels]) {
            *target += *sum;
        }
        for (target, sum) in io.parameter_gradient(0).iter_mut().zip(&total[channels..]) {
            *target += *sum;
        }
        let Some((mut target, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let weight = io.parameter(0);
        let share = T::of(1.0 / self.rows.max(1) as f64);
        let target = Parts::new(&mut target);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.rows, 1) {
                let range = row * channels..(row + 1) * channels;
                // SAFETY: each row belongs to one worker; `before` is only read now.
                let (target, before) = unsafe { (target.part(range.clone()), values.part(range.clone())) };
                for j in 0..channels {
                    let scale = moments[channels + j];
                    let hat = (input[range.start + j] - moments[j]) * scale;
                    let value =
                        weight[j] * scale * (before[j] - share * (total[j] + hat * total[channels + j]));
                    target[j] = if accumulate { target[j] + value } else { value };
                }
            }
        });
    }
}

impl BatchNorm {
    /// Mean and 1/deviation: of the batch in training (the running ones follow), else the running ones.
    fn statistics<T: Real>(&self, io: &Io<T>, input: &[T]) {
        let (channels, mut moments) = (self.channels, io.scratch(MOMENTS));
        let (mut mean, mut variance) = (io.state(0), io.state(1));
        if io.context.training {
            let mut sums = io.scratch(SUMS);
            // Around the first row: then the squares do not cancel when the mean is large.
            let shift = &input[..channels];
            self.piecewise(io, &mut sums, &|range, sums| {
                self::moments(&input[range], shift, sums)
            });
            let (count, momentum) = (self.rows.max(1) as f64, self.momentum);
            for j in 0..channels {
                let first = sums[j].to_f64() / count;
                let spread = (sums[channels + j].to_f64() / count - first * first).max(0.0);
                let centre = shift[j].to_f64() + first;
                moments[j] = T::of(centre);
                moments[channels + j] = T::of(1.0 / (spread + self.epsilon).sqrt());
                let unbiased = spread * count / (count - 1.0).max(1.0);
                mean[j] = T::of((1.0 - momentum) * mean[j].to_f64() + momentum * centre);
                variance[j] = T::of((1.0 - momentum) * variance[j].to_f64() + momentum * unbiased);
            }
        } else {
            for j in 0..channels {
                moments[j] = mean[j];
                moments[channels + j] = T::of(1.0 / (variance[j].to_f64() + self.epsilon).sqrt());
            }
        }
    }

    /// Calls `add` with the values of each piece and its own sums; the first `2 · channels` of `sums` become the total.
    fn piecewise<T: Real>(
        &self,
        io: &Io<T>,
        sums: &mut [T],
        add: &(dyn Fn(std::ops::Range<usize>, &mut [T]) + Sync),
    ) {
        let (pieces, width) = (self.rows.div_ceil(PIECE), 2 * self.channels);
        sums.fill(T::ZERO);
        let parts = Parts::new(sums);
        io.pool().run(&|worker| {
            for piece in io.pool().share(worker, pieces, 1) {
                // SAFETY: each piece belongs to one worker.
                let own = unsafe { parts.part((piece + 1) * width..(piece + 2) * width) };
                let end = self.rows.min((piece + 1) * PIECE);
                add(piece * PIECE * self.channels..end * self.channels, own);
            }
        });
        let (total, rest) = sums.split_at_mut(width);
        for piece in rest.chunks_exact(width) {
            total
                .iter_mut()
                .zip(piece)
                .for_each(|(total, &sum)| *total += sum);
        }
    }
}
