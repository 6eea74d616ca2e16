//! What the losses over single values share: the mean over the valid rows, and its gradient.

use super::io::Io;
use super::real::Real;

/// `output[0]` = the mean of `loss(prediction, target)` over the valid rows; sums in f64.
pub fn elementwise_mean<T: Real>(io: &Io<T>, width: usize, loss: impl Fn(T, T) -> T) {
    let (prediction, target) = (io.input(0), io.input(1));
    let count = io.context.valid_rows * width;
    let pairs = prediction[..count].iter().zip(&target[..count]);
    let sum: f64 = pairs.map(|(&p, &t)| loss(p, t).to_f64()).sum();
    io.output(0)[0] = T::of(sum / count.max(1) as f64);
}

/// The gradient of [`elementwise_mean`]; zero for the padding.
pub fn elementwise_gradient<T: Real>(io: &Io<T>, width: usize, derivative: impl Fn(T, T) -> T) {
    let Some((mut gradient, accumulate)) = io.input_gradient(0) else {
        return;
    };
    let (prediction, target) = (io.input(0), io.input(1));
    let count = io.context.valid_rows * width;
    let factor = T::of(io.context.loss_weight / count.max(1) as f64);
    if !accumulate {
        gradient.fill(T::ZERO);
    }
    let pairs = prediction.iter().zip(target.iter());
    for (gradient, (&p, &t)) in gradient.iter_mut().zip(pairs).take(count) {
        *gradient += factor * derivative(p, t);
    }
}
