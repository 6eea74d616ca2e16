//! Three matmuls over unfolded rows: place by place, the channels of the input steps that an output reads.

use super::Conv1d;
use crate::EngineError;
use crate::activation::Activation;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;

/// Positions in the scratch: unfolded rows, later their gradient; the weight and its gradient in the order of the rows; the gradient
/// before the activation.
const ROWS: usize = 0;
const WEIGHT: usize = 1;
const WEIGHT_GRADIENT: usize = 2;
const BEFORE: usize = 3;

impl<T: Real> CpuOperation<T> for Conv1d {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        let fused = self.activation != Activation::None;
        vec![
            self.rows() * self.patch(),
            self.patch() * self.filters,
            self.patch() * self.filters,
            if fused { self.rows() * self.filters } else { 0 },
        ]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        self.unfold(io);
        let (original, mut weight) = (io.parameter(0), io.scratch(WEIGHT));
        self.each_weight(|outside, inside| weight[inside] = original[outside]);
        let (rows, bias, mut output) = (io.scratch_result(ROWS), io.parameter(1), io.output(0));
        let activation = self.activation;
        let finish = |_row: usize, first: usize, values: &mut [T]| {
            for (value, &bias) in values.iter_mut().zip(&bias[first..]) {
                *value += bias;
            }
            activation.apply(values);
        };
        let product = Product {
            a: &Matrix::new(&rows, self.rows(), self.patch()),
            b: &Matrix::new(&weight, self.filters, self.patch()).transposed(),
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

impl Conv1d {
    fn backward_from<T: Real>(&self, io: &Io<T>, gradient: &[T]) {
        add_columns(
            io.pool(),
            gradient,
            self.rows(),
            self.filters,
            &mut io.parameter_gradient(1),
        );
        let before = Matrix::new(gradient, self.rows(), self.filters);
        let mut rows = io.scratch(ROWS);
        let mut own = io.scratch(WEIGHT_GRADIENT);
        let product = Product {
            a: &before.transposed(),
            b: &Matrix::new(&rows, self.rows(), self.patch()),
            c: Parts::new(&mut own),
            stride: self.patch(),
            accumulate: false,
            epilogue: None,
        };
        io.gemm().multiply(io.pool(), &product);
        let mut target = io.parameter_gradient(0);
        self.each_weight(|outside, inside| target[outside] += own[inside]);
        let Some((mut target, accumulate)) = io.input_gradient(0) else {
            return;
        };
        let weight = io.scratch_result(WEIGHT);
        let product = Product {
            a: &Matrix::new(gradient, self.rows(), self.filters),
            b: &Matrix::new(&weight, self.filters, self.patch()),
            c: Parts::new(&mut rows),
            stride: self.patch(),
            accumulate: false,
            epilogue: None,
        };
        io.gemm().multiply(io.pool(), &product);
        self.fold(io, &rows, &mut target, accumulate);
    }

    /// Places of the weight in PyTorch's order and in the order of the rows.
    fn each_weight(&self, mut each: impl FnMut(usize, usize)) {
        let taps = self.causal.taps;
        for filter in 0..self.filters {
            for channel in 0..self.channels {
                for place in 0..taps {
                    each(
                        (filter * self.channels + channel) * taps + place,
                        (filter * taps + place) * self.channels + channel,
                    );
                }
            }
        }
    }

    fn unfold<T: Real>(&self, io: &Io<T>) {
        let (input, mut rows) = (io.input(0), io.scratch(ROWS));
        let (channels, patch) = (self.channels, self.patch());
        let rows = Parts::new(&mut rows);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.rows(), 1) {
                // SAFETY: each row belongs to one worker.
                let target = unsafe { rows.part(row * patch..(row + 1) * patch) };
                for (place, target) in target.chunks_exact_mut(channels).enumerate() {
                    match self.source(row / self.batch, place) {
                        Some(step) => {
                            let from = (step * self.batch + row % self.batch) * channels;
                            target.copy_from_slice(&input[from..from + channels]);
                        }
                        None => target.fill(T::ZERO),
                    }
                }
            }
        });
    }

    /// Adds what all outputs that read an input step sent back to it.
    fn fold<T: Real>(&self, io: &Io<T>, rows: &[T], target: &mut [T], accumulate: bool) {
        let (channels, causal) = (self.channels, &self.causal);
        let target = Parts::new(target);
        io.pool().run(&|worker| {
            for row in io.pool().share(worker, self.steps * self.batch, 1) {
                // SAFETY: each row belongs to one worker.
                let target = unsafe { target.part(row * channels..(row + 1) * channels) };
                if !accumulate {
                    target.fill(T::ZERO);
                }
                let distance = self.steps - 1 - row / self.batch;
                for place in 0..causal.taps {
                    let Some(back) = distance.checked_sub((causal.taps - 1 - place) * causal.dilation) else {
                        continue;
                    };
                    if back % causal.stride != 0 || back / causal.stride >= causal.outputs {
                        continue;
                    }
                    let output = causal.outputs - 1 - back / causal.stride;
                    let from = (output * self.batch + row % self.batch) * self.patch() + place * channels;
                    let source = &rows[from..from + channels];
                    target
                        .iter_mut()
                        .zip(source)
                        .for_each(|(sum, &value)| *sum += value);
                }
            }
        });
    }
}
