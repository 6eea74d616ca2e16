//! Row by row in f64: predictions are few next to the rest of a step.

use super::Terms;
use super::shape::{Term, TermLoss};
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::real::Real;

/// Where 1 − p_t is that small, the focal loss is flat.
const LEAST_REST: f64 = 1e-7;

fn float(word: i32) -> f64 {
    f64::from(f32::from_bits(word as u32))
}

/// ln(1 + e^x) without an overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The loss of one output.
fn value(loss: TermLoss, output: f64, label: f64) -> f64 {
    let error = output - label;
    match loss {
        TermLoss::Squared => error * error,
        TermLoss::Absolute => error.abs(),
        TermLoss::Huber { delta } if error.abs() > delta => delta * (error.abs() - 0.5 * delta),
        TermLoss::Huber { .. } => 0.5 * error * error,
        TermLoss::Quantile { quantile } => (-quantile * error).max((1.0 - quantile) * error),
        TermLoss::Binary { gamma } => {
            let entropy = softplus(output) - output * label;
            if gamma == 0.0 {
                return entropy;
            }
            let rest = sigmoid(if label > 0.5 { -output } else { output });
            rest.powf(gamma) * entropy
        }
        TermLoss::Classes { .. } => 0.0,
    }
}

/// Its derivative by the output.
fn slope(loss: TermLoss, output: f64, label: f64) -> f64 {
    let error = output - label;
    match loss {
        TermLoss::Squared => 2.0 * error,
        // As PyTorch: no slope where there is no error.
        TermLoss::Absolute => f64::from(u8::from(error > 0.0)) - f64::from(u8::from(error < 0.0)),
        TermLoss::Huber { delta } => error.clamp(-delta, delta),
        TermLoss::Quantile { quantile } if error < 0.0 => -quantile,
        TermLoss::Quantile { quantile } if error > 0.0 => 1.0 - quantile,
        TermLoss::Quantile { .. } => 0.0,
        TermLoss::Binary { gamma: 0.0 } => sigmoid(output) - label,
        TermLoss::Binary { gamma } => {
            // s (1 − p)^γ (γ p ln p − (1 − p)), p the probability of the label.
            let sign = if label > 0.5 { 1.0 } else { -1.0 };
            let towards = sign * output;
            let (own, rest) = (sigmoid(towards), sigmoid(-towards));
            sign * rest.powf(gamma) * (-gamma * own * softplus(-towards) - rest)
        }
        TermLoss::Classes { .. } => 0.0,
    }
}

/// ln Σ e^x of a row.
fn log_sum<T: Real>(row: &[T]) -> f64 {
    let largest = row
        .iter()
        .fold(f64::NEG_INFINITY, |largest, value| largest.max(value.to_f64()));
    let sum: f64 = row.iter().map(|value| (value.to_f64() - largest).exp()).sum();
    sum.ln() + largest
}

/// Cross-entropy of logits and a class, smoothed or focal.
fn class_value<T: Real>(row: &[T], own: usize, smoothing: f64, gamma: f64) -> f64 {
    let log_sum = log_sum(row);
    let entropy = log_sum - row[own].to_f64();
    let mean = log_sum - row.iter().map(|value| value.to_f64()).sum::<f64>() / row.len() as f64;
    let smoothed = (1.0 - smoothing) * entropy + smoothing * mean;
    if gamma == 0.0 {
        return smoothed;
    }
    (1.0 - (-entropy).exp()).max(0.0).powf(gamma) * smoothed
}

/// What the derivative by logit k is made of: `factor · (p_k − [k is the class])`, for the focal loss; the smoothed one is computed in place.
fn focal_factor(entropy: f64, gamma: f64) -> f64 {
    let own = (-entropy).exp();
    let rest = (1.0 - own).max(LEAST_REST);
    // −∂L/∂p · p with L = −(1 − p)^γ ln p.
    gamma * rest.powf(gamma - 1.0) * own * entropy + rest.powf(gamma)
}

impl Terms {
    fn class<T: Real>(&self, row: &[T], label: f64) -> Result<usize, EngineError> {
        let class = label as i64;
        usize::try_from(class)
            .ok()
            .filter(|class| *class < row.len())
            .ok_or(EngineError::Index {
                operation: "terms",
                index: class,
                rows: row.len(),
            })
    }
}

impl<T: Real> CpuOperation<T> for Terms {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (prediction, words) = (io.input(0), io.input_indices(1));
        let count = io.context.valid_rows;
        let mut total = 0.0;
        let rows = prediction
            .chunks_exact(self.width)
            .zip(words.chunks_exact(2 * self.columns));
        for (outputs, words) in rows.take(count) {
            for Term {
                loss,
                first,
                count,
                classes,
                column,
                share,
            } in self.terms.iter().copied()
            {
                for place in 0..count {
                    let label = float(words[column + place]);
                    let weight = share * float(words[self.columns + column + place]);
                    // A label that is missing has no weight, whatever it is.
                    if weight == 0.0 {
                        continue;
                    }
                    total += weight
                        * match loss {
                            TermLoss::Classes { smoothing, gamma } => {
                                let row = &outputs[first..first + classes];
                                class_value(row, self.class(row, label)?, smoothing, gamma)
                            }
                            _ => value(loss, outputs[first + place].to_f64(), label),
                        };
                }
            }
        }
        io.output(0)[0] = T::of(total / count.max(1) as f64);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some((mut gradient, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let (prediction, words) = (io.input(0), io.input_indices(1));
        let count = io.context.valid_rows;
        if !accumulate {
            gradient.fill(T::ZERO);
        }
        let whole = io.context.loss_weight / count.max(1) as f64;
        let rows = prediction
            .chunks_exact(self.width)
            .zip(gradient.chunks_exact_mut(self.width))
            .zip(words.chunks_exact(2 * self.columns));
        for ((outputs, gradient), words) in rows.take(count) {
            for Term {
                loss,
                first,
                count,
                classes,
                column,
                share,
            } in self.terms.iter().copied()
            {
                for place in 0..count {
                    let label = float(words[column + place]);
                    let weight = whole * share * float(words[self.columns + column + place]);
                    if weight == 0.0 {
                        continue;
                    }
                    let TermLoss::Classes { smoothing, gamma } = loss else {
                        let at = first + place;
                        gradient[at] += T::of(weight * slope(loss, outputs[at].to_f64(), label));
                        continue;
                    };
                    let row = &outputs[first..first + classes];
                    let Ok(own) = self.class(row, label) else {
                        continue;
                    };
                    let log_sum = log_sum(row);
                    let factor = match gamma {
                        0.0 => 1.0,
                        gamma => focal_factor(log_sum - row[own].to_f64(), gamma),
                    };
                    for (index, (gradient, value)) in gradient[first..].iter_mut().zip(row).enumerate() {
                        let share = (value.to_f64() - log_sum).exp();
                        let wanted =
                            smoothing / classes as f64 + if index == own { 1.0 - smoothing } else { 0.0 };
                        *gradient += T::of(weight * factor * (share - wanted));
                    }
                }
            }
        }
    }
}
