//! Sums over rows and over everything, in an order that depends on sizes alone.

use super::pool::{Parts, Pool};
use super::real::Real;
use super::vectorised::vectorised;

/// Columns summed together: their running sums stay in registers.
const WIDTH: usize = 64;
/// Rows summed before the sum is put aside, so that rounding does not pile up over long batches.
const ROWS: usize = 256;
/// Values in a cache line.
const LINE: usize = 16;

vectorised! {
    fn stripe<T>(matrix: &[T], rows: usize, stride: usize, first: usize, target: &mut [T]) {
        for start in (0..rows).step_by(ROWS) {
            let mut sums = [T::ZERO; WIDTH];
            for row in start..rows.min(start + ROWS) {
                let values = &matrix[row * stride + first..][..target.len()];
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum += value;
                }
            }
            for (total, &sum) in target.iter_mut().zip(&sums) {
                *total += sum;
            }
        }
    }
}

/// `target[j] += Σ matrix[i, j]` over rows `stride` apart.
pub fn add_columns<T: Real>(pool: &Pool, matrix: &[T], rows: usize, stride: usize, target: &mut [T]) {
    let columns = target.len();
    let target = Parts::new(target);
    pool.run(&|worker| {
        // Few columns are shared by the cache line; each sum stays one worker's, so the result is the same.
        let unit = if columns < WIDTH * pool.workers() {
            LINE
        } else {
            WIDTH
        };
        let mine = pool.share(worker, columns, unit);
        for first in mine.clone().step_by(WIDTH) {
            let end = mine.end.min(first + WIDTH);
            // SAFETY: stripes of columns do not overlap.
            stripe(matrix, rows, stride, first, unsafe { target.part(first..end) });
        }
    });
}

vectorised! {
    /// Σ x² of a stretch, in eight interleaved sums that become one in fixed order.
    pub fn squares<T>(values: &[T]) -> f64 {
        let mut sums = [T::ZERO; 32];
        let chunks = values.chunks_exact(32);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (sum, &value) in sums.iter_mut().zip(chunk) {
                *sum = value.multiply_add::<FUSED>(value, *sum);
            }
        }
        let tail: f64 = rest.iter().map(|value| value.to_f64() * value.to_f64()).sum();
        sums.iter().map(|sum| sum.to_f64()).sum::<f64>() + tail
    }
}
