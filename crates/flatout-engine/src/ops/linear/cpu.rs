//! Three products: forward with bias and activation behind the tile, and the gradients of input and weight.

use super::Linear;
use crate::EngineError;
use crate::activation::Activation;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;

impl<T: Real> CpuOperation<T> for Linear {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        // The gradient before the activation; without one it is the output's own.
        let fused = self.activation != Activation::None;
        vec![if fused { self.rows * self.outputs } else { 0 }]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, weight, bias, mut output) = (io.input(0), io.parameter(0), io.parameter(1), io.output(0));
        let activation = self.activation;
        let finish = |_row: usize, first: usize, values: &mut [T]| {
            for (value, &bias) in values.iter_mut().zip(&bias[first..]) {
                *value += bias;
            }
            activation.apply(values);
        };
        let product = Product {
            a: &Matrix::new(&input, self.rows, self.inputs),
            b: &Matrix::new(&weight, self.outputs, self.inputs).transposed(),
            c: Parts::new(&mut output),
            stride: self.outputs,
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
        let mut scratch = io.scratch(0);
        if self.activation == Activation::None {
            return self.backward_from(io, &gradient);
        }
        io.gradient_before(self.activation, &gradient, &mut scratch);
        self.backward_from(io, &scratch);
    }
}

impl Linear {
    fn backward_from<T: Real>(&self, io: &Io<T>, gradient: &[T]) {
        let before = Matrix::new(gradient, self.rows, self.outputs);
        if let Some((mut target, accumulate)) = io.input_gradient(0) {
            let weight = io.parameter(0);
            let product = Product {
                a: &before,
                b: &Matrix::new(&weight, self.outputs, self.inputs),
                c: Parts::new(&mut target),
                stride: self.inputs,
                accumulate,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        }
        let (input, mut target) = (io.input(0), io.parameter_gradient(0));
        let product = Product {
            a: &before.transposed(),
            b: &Matrix::new(&input, self.rows, self.inputs),
            c: Parts::new(&mut target),
            stride: self.inputs,
            accumulate: true,
            epilogue: None,
        };
        io.gemm().multiply(io.pool(), &product);
        add_columns(
            io.pool(),
            gradient,
            self.rows,
            self.outputs,
            &mut io.parameter_gradient(1),
        );
    }
}
