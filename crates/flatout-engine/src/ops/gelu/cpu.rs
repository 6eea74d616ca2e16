//! Element by element.

use super::Gelu;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

vectorised! {
    fn apply<T>(target: &mut [T], source: &[T]) {
        let (half, root) = (T::of(0.5), T::of(FRAC_1_SQRT_2));
        for (target, &x) in target.iter_mut().zip(source) {
            *target = half * x * (T::ONE + (x * root).error_function::<FUSED>());
        }
    }
}

vectorised! {
    fn slope<T>(target: &mut [T], gradient: &[T], source: &[T], accumulate: bool) {
        let (half, root) = (T::of(0.5), T::of(FRAC_1_SQRT_2));
        let density = T::of(1.0 / TAU.sqrt());
        for ((target, &gradient), &x) in target.iter_mut().zip(gradient).zip(source) {
            let below = half * (T::ONE + (x * root).error_function::<FUSED>());
            let value = gradient * (below + x * density * (-(half * x * x)).exponential::<FUSED>());
            *target = if accumulate { *target + value } else { value };
        }
    }
}

/// The GELU of everything, all workers together.
pub(crate) fn apply_all<T: Real>(io: &Io<T>, input: &[T], output: &mut [T]) {
    let target = Parts::new(output);
    io.pool().run(&|worker| {
        let range = io.pool().share(worker, input.len(), 64);
        // SAFETY: shares do not overlap.
        apply(unsafe { target.part(range.clone()) }, &input[range]);
    });
}

/// `target = gradient · gelu′(input)`, or `target += …`, all workers together.
pub(crate) fn slope_all<T: Real>(
    io: &Io<T>,
    gradient: &[T],
    input: &[T],
    target: &mut [T],
    accumulate: bool,
) {
    let target = Parts::new(target);
    io.pool().run(&|worker| {
        let range = io.pool().share(worker, input.len(), 64);
        // SAFETY: shares do not overlap.
        let target = unsafe { target.part(range.clone()) };
        slope(target, &gradient[range.clone()], &input[range], accumulate);
    });
}

impl<T: Real> CpuOperation<T> for Gelu {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        apply_all(io, &io.input(0), &mut io.output(0));
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let (Some(gradient), Some((mut target, accumulate))) = (io.output_gradient(0), io.input_gradient(0))
        else {
            return;
        };
        slope_all(io, &gradient, &io.input(0), &mut target, accumulate);
    }
}
