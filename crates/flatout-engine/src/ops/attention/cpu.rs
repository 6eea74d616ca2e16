//! Sample by sample and head by head: a worker copies the head's queries, keys and values together, so that both matmuls run over
//! contiguous rows.

use super::Attention;
use crate::EngineError;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;

/// Positions in the scratch: what a worker needs for one head; the logarithm of each row's sum of exponentials.
const HEAD: usize = 0;
const SUMS: usize = 1;

vectorised! {
    /// `scores[j] = Σ a[c] · b[c, j]`, `b` being `[size, steps]`.
    fn scores_of<T>(scores: &mut [T], a: &[T], b: &[T]) {
        scores.fill(T::ZERO);
        let steps = scores.len();
        for (&a, b) in a.iter().zip(b.chunks_exact(steps)) {
            for (score, &b) in scores.iter_mut().zip(b) {
                *score = a.multiply_add::<FUSED>(b, *score);
            }
        }
    }
}

vectorised! {
    /// `target[c] += Σ weights[j] · rows[j, c]`.
    fn add_rows<T>(target: &mut [T], weights: &[T], rows: &[T]) {
        let size = target.len();
        for (&weight, row) in weights.iter().zip(rows.chunks_exact(size)) {
            for (target, &value) in target.iter_mut().zip(row) {
                *target = weight.multiply_add::<FUSED>(value, *target);
            }
        }
    }
}

vectorised! {
    /// `rows[j, c] += weights[j] · source[c]`.
    fn add_outer<T>(rows: &mut [T], weights: &[T], source: &[T]) {
        let size = source.len();
        for (&weight, row) in weights.iter().zip(rows.chunks_exact_mut(size)) {
            for (target, &value) in row.iter_mut().zip(source) {
                *target = weight.multiply_add::<FUSED>(value, *target);
            }
        }
    }
}

vectorised! {
    /// `scores = exp(scale · scores − shift)`.
    fn exponentials<T>(scores: &mut [T], scale: T, shift: T) {
        for score in scores {
            *score = (*score * scale - shift).exponential::<FUSED>();
        }
    }
}

impl<T: Real> CpuOperation<T> for Attention {
    fn scratch(&self, _gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
        vec![workers * self.head_space(), self.rows()]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, mut output) = (io.input(0), io.output(0));
        let (mut space, mut sums) = (io.scratch(HEAD), io.scratch(SUMS));
        let (space, sums, output) = (
            Parts::new(&mut space),
            Parts::new(&mut sums),
            Parts::new(&mut output),
        );
        let (steps, size, scale) = (self.steps, self.size, T::of(self.scale()));
        io.pool().run(&|worker| {
            let own = worker * self.head_space()..(worker + 1) * self.head_space();
            // SAFETY: each worker has its own part.
            let space = unsafe { space.part(own) };
            let (queries, rest) = space.split_at_mut(steps * size);
            let (keys, rest) = rest.split_at_mut(steps * size);
            let (values, rest) = rest.split_at_mut(steps * size);
            let (scores, _) = rest.split_at_mut(steps);
            for item in io.pool().share(worker, self.batch * self.heads, 1) {
                self.gather(&input, item, 0, queries);
                self.gather_transposed(&input, item, 1, keys);
                self.gather(&input, item, 2, values);
                for (step, query) in queries.chunks_exact(size).enumerate() {
                    scores_of(scores, query, keys);
                    let largest = scores.iter().fold(scores[0], |most, &score| most.larger(score));
                    exponentials(scores, scale, largest * scale);
                    let sum: f64 = scores.iter().map(|score| score.to_f64()).sum();
                    let place = self.place(item, step);
                    // SAFETY: each row of each head belongs to one worker.
                    let (target, logarithm) = unsafe {
                        let row = item * steps + step;
                        (output.part(place..place + size), sums.part(row..row + 1))
                    };
                    logarithm[0] = largest * scale + T::of(sum.ln());
                    target.fill(T::ZERO);
                    add_rows(target, scores, values);
                    let share = T::of(1.0 / sum);
                    target.iter_mut().for_each(|value| *value *= share);
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        let (input, result, sums) = (io.input(0), io.result(0), io.scratch_result(SUMS));
        let mut space = io.scratch(HEAD);
        let (space, target) = (Parts::new(&mut space), Parts::new(&mut target));
        let (steps, size, scale) = (self.steps, self.size, T::of(self.scale()));
        io.pool().run(&|worker| {
            let own = worker * self.head_space()..(worker + 1) * self.head_space();
            // SAFETY: each worker has its own part.
            let space = unsafe { space.part(own) };
            let (matrices, scores) = space.split_at_mut(7 * steps * size);
            let (weights, slopes) = scores.split_at_mut(steps);
            let mut parts = matrices.chunks_exact_mut(steps * size);
            let mut next = || parts.next().unwrap_or_default();
            let (queries, keys, keys_across, values_across) = (next(), next(), next(), next());
            let (query_gradients, key_gradients, value_gradients) = (next(), next(), next());
            for item in io.pool().share(worker, self.batch * self.heads, 1) {
                self.gather(&input, item, 0, queries);
                self.gather(&input, item, 1, keys);
                self.gather_transposed(&input, item, 1, keys_across);
                self.gather_transposed(&input, item, 2, values_across);
                for part in [&mut *query_gradients, &mut *key_gradients, &mut *value_gradients] {
                    part.fill(T::ZERO);
                }
                for step in 0..steps {
                    let query = &queries[step * size..][..size];
                    let place = self.place(item, step);
                    let (behind, output) = (&gradient[place..place + size], &result[place..place + size]);
                    scores_of(weights, query, keys_across);
                    exponentials(weights, scale, sums[item * steps + step]);
                    scores_of(slopes, behind, values_across);
                    let mut along = T::ZERO;
                    for (&gradient, &output) in behind.iter().zip(output) {
                        along += gradient * output;
                    }
                    add_outer(value_gradients, weights, behind);
                    for (slope, &weight) in slopes.iter_mut().zip(&*weights) {
                        *slope = weight * (*slope - along) * scale;
                    }
                    add_rows(&mut query_gradients[step * size..][..size], slopes, keys);
                    add_outer(key_gradients, slopes, query);
                }
                let all = [&*query_gradients, &*key_gradients, &*value_gradients];
                for (part, gradients) in all.into_iter().enumerate() {
                    for (step, row) in gradients.chunks_exact(size).enumerate() {
                        let place = self.input_place(item, step, part);
                        // SAFETY: each row of each head belongs to one worker.
                        let target = unsafe { target.part(place..place + size) };
                        for (target, &value) in target.iter_mut().zip(row) {
                            *target = if accumulate { *target + value } else { value };
                        }
                    }
                }
            }
        });
    }
}

impl Attention {
    /// Seven matrices of a head in backward, and two rows of scores.
    fn head_space(&self) -> usize {
        7 * self.steps * self.size + 2 * self.steps
    }

    /// Where a head's output of a step begins.
    fn place(&self, item: usize, step: usize) -> usize {
        (step * self.batch + item / self.heads) * self.width() + item % self.heads * self.size
    }

    /// Where a head's queries (part 0), keys (1) or values (2) of a step begin.
    fn input_place(&self, item: usize, step: usize, part: usize) -> usize {
        let row = (step * self.batch + item / self.heads) * 3 + part;
        row * self.width() + item % self.heads * self.size
    }

    fn gather<T: Real>(&self, input: &[T], item: usize, part: usize, target: &mut [T]) {
        for (step, target) in target.chunks_exact_mut(self.size).enumerate() {
            let place = self.input_place(item, step, part);
            target.copy_from_slice(&input[place..place + self.size]);
        }
    }

    /// As `[size, steps]`.
    fn gather_transposed<T: Real>(&self, input: &[T], item: usize, part: usize, target: &mut [T]) {
        for step in 0..self.steps {
            let place = self.input_place(item, step, part);
            for (c, &value) in input[place..place + self.size].iter().enumerate() {
                target[c * self.steps + step] = value;
            }
        }
    }
}
