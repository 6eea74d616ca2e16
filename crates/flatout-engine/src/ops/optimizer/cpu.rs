//! One loop over each parameter; elements are independent, so the division among workers cannot change a bit.

use super::{Optimizer, Rule};
use crate::cpu::memory::Memory;
use crate::cpu::pool::{Parts, Pool};
use crate::cpu::real::Real;
use crate::cpu::vectorised::vectorised;
use crate::plan::Plan;
use std::ops::Range;

/// What one update needs beside the tensors, computed in f64 as PyTorch does.
#[derive(Clone, Copy)]
struct Constants<T> {
    rule: Rule,
    /// Clip factor.
    factor: T,
    learning_rate: T,
    /// 1 − rate · decay.
    keep: T,
    weight_decay: T,
    beta1: T,
    beta2: T,
    rest1: T,
    rest2: T,
    epsilon: T,
    /// rate / (1 − β₁ᵗ).
    step_size: T,
    /// 1 / √(1 − β₂ᵗ).
    correction: T,
}

impl<T: Real> Constants<T> {
    fn new(optimizer: &Optimizer, learning_rate: f64, factor: f64, updates: u64) -> Self {
        let count = i32::try_from(updates).unwrap_or(i32::MAX);
        let Optimizer {
            rule,
            beta1,
            beta2,
            epsilon,
            weight_decay,
            ..
        } = *optimizer;
        Self {
            rule,
            factor: T::of(factor),
            learning_rate: T::of(learning_rate),
            keep: T::of(1.0 - learning_rate * weight_decay),
            weight_decay: T::of(weight_decay),
            beta1: T::of(beta1),
            beta2: T::of(beta2),
            rest1: T::of(1.0 - beta1),
            rest2: T::of(1.0 - beta2),
            epsilon: T::of(epsilon),
            step_size: T::of(learning_rate / (1.0 - beta1.powi(count))),
            correction: T::of(1.0 / (1.0 - beta2.powi(count)).sqrt()),
        }
    }
}

vectorised! {
    fn adam<T>(c: Constants<T>, parameter: &mut [T], gradient: &[T], mean: &mut [T], square: &mut [T]) {
        let decoupled = c.rule == Rule::AdamW;
        let (keep, coupled) = if decoupled { (c.keep, T::ZERO) } else { (T::ONE, c.weight_decay) };
        let count = parameter.len();
        let (gradient, mean, square) = (&gradient[..count], &mut mean[..count], &mut square[..count]);
        for i in 0..count {
            let g = (gradient[i] * c.factor) + coupled * parameter[i];
            mean[i] = c.beta1 * mean[i] + c.rest1 * g;
            square[i] = c.beta2 * square[i] + c.rest2 * g * g;
            let scale = square[i].square_root() * c.correction + c.epsilon;
            parameter[i] = parameter[i] * keep - c.step_size * (mean[i] / scale);
        }
    }
}

vectorised! {
    fn descend<T>(c: Constants<T>, parameter: &mut [T], gradient: &[T], momentum: &mut [T]) {
        let count = parameter.len();
        let (gradient, momentum) = (&gradient[..count], &mut momentum[..count]);
        for i in 0..count {
            let g = gradient[i] * c.factor + c.weight_decay * parameter[i];
            momentum[i] = c.beta1 * momentum[i] + g;
            parameter[i] -= c.learning_rate * momentum[i];
        }
    }
}

vectorised! {
    fn follow<T>(rest: T, average: &mut [T], parameter: &[T]) {
        let count = average.len();
        let parameter = &parameter[..count];
        for i in 0..count {
            average[i] += rest * (parameter[i] - average[i]);
        }
    }
}

/// One update of all parameters; `updates` counts this one.
pub fn update<T: Real>(
    plan: &Plan,
    memory: &Memory<T>,
    pool: &Pool,
    learning_rate: f64,
    factor: f64,
    updates: u64,
) {
    let constants = Constants::<T>::new(plan.optimizer(), learning_rate, factor, updates);
    pool_over_trained(plan, memory, pool, |moments, parameter, gradient| match moments {
        [mean, square] => adam(constants, parameter, gradient, mean, square),
        [momentum, ..] => descend(constants, parameter, gradient, momentum),
        [] => {}
    });
    let Some(decay) = plan.optimizer().average else {
        return;
    };
    for trained in plan.trained() {
        let Some(&average) = trained.moments.last() else {
            continue;
        };
        let (mut average, parameter) = (memory.write(average), memory.read(trained.parameter));
        let average = Parts::new(&mut average);
        run(pool, parameter.len(), &|range: Range<usize>| {
            // SAFETY: shares do not overlap.
            let average = unsafe { average.part(range.clone()) };
            follow(T::of(1.0 - decay), average, &parameter[range]);
        });
    }
}

/// Calls `apply` with each worker's share.
fn run(pool: &Pool, count: usize, apply: &(impl Fn(Range<usize>) + Sync)) {
    let stretch = |worker: usize| apply(pool.share(worker, count, 64));
    // Small tensors are not worth waking anybody for.
    if count > 4096 {
        pool.run(&stretch);
    } else {
        (0..pool.workers()).for_each(stretch);
    }
}

/// Calls `apply` with each worker's stretch of each trained tensor.
fn pool_over_trained<T: Real>(
    plan: &Plan,
    memory: &Memory<T>,
    pool: &Pool,
    apply: impl Fn(&mut [&mut [T]], &mut [T], &[T]) + Sync,
) {
    let moments = match plan.optimizer().rule {
        Rule::AdamW | Rule::Adam => 2,
        Rule::Sgd => 1,
    };
    for trained in plan.trained() {
        let (mut parameter, gradient) = (memory.write(trained.parameter), memory.read(trained.gradient));
        let parameter = Parts::new(&mut parameter);
        let mut first = trained.moments.first().map(|&moment| memory.write(moment));
        let second = trained.moments.get(1).filter(|_| moments > 1);
        let mut second = second.map(|&moment| memory.write(moment));
        let first = first.as_mut().map(|moment| Parts::new(moment));
        let second = second.as_mut().map(|moment| Parts::new(moment));
        run(pool, gradient.len(), &|range: Range<usize>| {
            // SAFETY: shares do not overlap.
            let (parameter, first, second) = unsafe {
                (
                    parameter.part(range.clone()),
                    first.map(|moment| moment.part(range.clone())),
                    second.map(|moment| moment.part(range.clone())),
                )
            };
            match (first, second) {
                (Some(one), Some(two)) => apply(&mut [one, two], parameter, &gradient[range]),
                (Some(one), None) => apply(&mut [one], parameter, &gradient[range]),
                _ => {}
            }
        });
    }
}
