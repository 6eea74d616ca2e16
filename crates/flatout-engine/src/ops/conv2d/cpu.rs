//! Three matrix products whose one side are patches: forward, the weight's gradient, the input's gradient.

use super::Conv2d;
use super::patches::{Patches, Reached};
use crate::EngineError;
use crate::activation::Activation;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;

/// Positions in the scratch.
const WEIGHT: usize = 0;
const BEFORE: usize = 1;

impl<T: Real> CpuOperation<T> for Conv2d {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        // The weight (or its gradient) in the order of the patches, and the gradient before the activation.
        let fused = self.activation != Activation::None;
        vec![
            self.patch() * self.filters,
            if fused { self.pixels() * self.filters } else { 0 },
        ]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (images, mut output) = (io.input(0), io.output(0));
        let bias = self.bias.then(|| io.parameter(1));
        let (original, mut weight) = (io.parameter(0), io.scratch(WEIGHT));
        self.each_weight(|outside, place, channel, filter| {
            weight[(place * self.channels + channel) * self.filters + filter] = original[outside];
        });
        let activation = self.activation;
        let finish = |_row: usize, first: usize, values: &mut [T]| {
            if let Some(bias) = &bias {
                for (value, &bias) in values.iter_mut().zip(&bias[first..]) {
                    *value += bias;
                }
            }
            activation.apply(values);
        };
        let product = Product {
            a: &Patches {
                images: &images,
                op: self,
            },
            b: &Matrix::new(&weight, self.patch(), self.filters),
            c: Parts::new(&mut output),
            stride: self.filters,
            accumulate: false,
            epilogue: Some(&finish),
        };
        io.gemm().multiply(io.pool(), &product);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        if self.activation == Activation::None {
            return self.backward_from(io, &gradient);
        }
        let mut before = io.scratch(BEFORE);
        io.gradient_before(self.activation, &gradient, &mut before);
        self.backward_from(io, &before);
    }
}

impl Conv2d {
    fn backward_from<T: Real>(&self, io: &Io<T>, gradient: &[T]) {
        if self.bias {
            add_columns(
                io.pool(),
                gradient,
                self.pixels(),
                self.filters,
                &mut io.parameter_gradient(1),
            );
        }
        self.weight_gradient(io, gradient);
        let Some((mut target, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let (original, mut weight) = (io.parameter(0), io.scratch(WEIGHT));
        self.each_weight(|outside, place, channel, filter| {
            weight[(place * self.filters + filter) * self.channels + channel] = original[outside];
        });
        let product = Product {
            a: &Reached {
                gradients: gradient,
                op: self,
            },
            b: &Matrix::new(
                &weight,
                self.patch() / self.channels * self.filters,
                self.channels,
            ),
            c: Parts::new(&mut target),
            stride: self.channels,
            accumulate,
            epilogue: None,
        };
        io.gemm().multiply(io.pool(), &product);
    }

    fn weight_gradient<T: Real>(&self, io: &Io<T>, gradient: &[T]) {
        let (images, mut sums) = (io.input(0), io.scratch(WEIGHT));
        let product = Product {
            a: &Matrix::new(gradient, self.pixels(), self.filters).transposed(),
            b: &Patches {
                images: &images,
                op: self,
            },
            c: Parts::new(&mut sums),
            stride: self.patch(),
            accumulate: false,
            epilogue: None,
        };
        io.gemm().multiply(io.pool(), &product);
        let mut target = io.parameter_gradient(0);
        self.each_weight(|outside, place, channel, filter| {
            target[outside] += sums[(filter * self.patch()) + place * self.channels + channel];
        });
    }

    /// Every weight: its index in PyTorch's order, its place under the window, its channel and filter.
    fn each_weight(&self, mut use_weight: impl FnMut(usize, usize, usize, usize)) {
        let places = self.window.size * self.window.size;
        let mut outside = 0;
        for filter in 0..self.filters {
            for channel in 0..self.channels {
                for place in 0..places {
                    use_weight(outside, place, channel, filter);
                    outside += 1;
                }
            }
        }
    }
}
