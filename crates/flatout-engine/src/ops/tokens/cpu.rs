//! Feature by feature.

use super::Tokens;
use crate::EngineError;
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

impl<T: Real> CpuOperation<T> for Tokens {
    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, weight, bias) = (io.input(0), io.parameter(0), io.parameter(1));
        let mut output = io.output(0);
        let (values, width) = (self.batch * self.width, self.width);
        let target = Parts::new(&mut output);
        io.pool().run(&|worker| {
            for feature in io.pool().share(worker, self.features, 1) {
                // SAFETY: each feature belongs to one worker.
                let target = unsafe { target.part(feature * values..(feature + 1) * values) };
                let own = feature * width..(feature + 1) * width;
                let (weight, bias) = (&weight[own.clone()], &bias[own]);
                for (row, target) in target.chunks_exact_mut(width).enumerate() {
                    let value = input[row * self.features + feature];
                    for ((target, &weight), &bias) in target.iter_mut().zip(weight).zip(bias) {
                        *target = value * weight + bias;
                    }
                }
            }
        });
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let (values, width) = (self.batch * self.width, self.width);
        let input = io.input(0);
        let (mut weight, mut bias) = (io.parameter_gradient(0), io.parameter_gradient(1));
        let (weight, bias) = (Parts::new(&mut weight), Parts::new(&mut bias));
        io.pool().run(&|worker| {
            for feature in io.pool().share(worker, self.features, 1) {
                let own = feature * width..(feature + 1) * width;
                // SAFETY: each feature belongs to one worker.
                let (weight, bias) = unsafe { (weight.part(own.clone()), bias.part(own)) };
                let rows = gradient[feature * values..][..values].chunks_exact(width);
                for (row, gradient) in rows.enumerate() {
                    let value = input[row * self.features + feature];
                    for ((weight, bias), &gradient) in weight.iter_mut().zip(&mut *bias).zip(gradient) {
                        *weight += value * gradient;
                        *bias += gradient;
                    }
                }
            }
        });
        let Some((mut target, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let weight = io.parameter(0);
        for (place, target) in target.iter_mut().enumerate() {
            let (row, feature) = (place / self.features, place % self.features);
            let gradient = &gradient[(feature * self.batch + row) * width..][..width];
            let weight = &weight[feature * width..][..width];
            let mut sum = if accumulate { *target } else { T::ZERO };
            for (&gradient, &weight) in gradient.iter().zip(weight) {
                sum += gradient * weight;
            }
            *target = sum;
        }
    }
}
