//! Dropout: each element is kept or not by a random number of its own (seed, step, node, element), so forward and backward
//! draw the same mask, whoever computes it.

use super::io::Io;
use super::pool::Parts;
use super::real::Real;
use crate::random::Stream;

/// Elements are kept when the upper 32 bits of their number are at or above the rate.
#[derive(Clone, Copy)]
struct Mask<T> {
    stream: Stream,
    threshold: u64,
    scale: T,
}

impl<T: Real> Mask<T> {
    fn new(io: &Io<T>, purpose: u64, rate: f64) -> Self {
        Self {
            stream: io.random(purpose),
            threshold: (rate * 4_294_967_296.0) as u64,
            scale: T::of(1.0 / (1.0 - rate)),
        }
    }

    #[inline(always)]
    fn factor(&self, index: usize) -> T {
        if self.stream.bits(index as u64) >> 32 >= self.threshold {
            self.scale
        } else {
            T::ZERO
        }
    }
}

/// `target = source · mask`, or `target += …`; in evaluation a copy.
pub fn drop_into<T: Real>(
    io: &Io<T>,
    purpose: u64,
    rate: f64,
    source: &[T],
    target: &mut [T],
    accumulate: bool,
) {
    let mask = Mask::new(io, purpose, rate);
    let training = io.context.training;
    let target = Parts::new(target);
    io.pool().run(&|worker| {
        let range = io.pool().share(worker, source.len(), 64);
        // SAFETY: shares do not overlap.
        let values = unsafe { target.part(range.clone()) };
        for (index, value) in range.zip(values) {
            let factor = if training { mask.factor(index) } else { T::ONE };
            let dropped = source[index] * factor;
            *value = if accumulate { *value + dropped } else { dropped };
        }
    });
}

/// `values *= mask`.
pub fn drop_in_place<T: Real>(io: &Io<T>, purpose: u64, rate: f64, values: &mut [T]) {
    if !io.context.training {
        return;
    }
    let mask = Mask::new(io, purpose, rate);
    let (length, values) = (values.len(), Parts::new(values));
    io.pool().run(&|worker| {
        let range = io.pool().share(worker, length, 64);
        // SAFETY: shares do not overlap.
        let mine = unsafe { values.part(range.clone()) };
        for (index, value) in range.zip(mine) {
            *value *= mask.factor(index);
        }
    });
}
