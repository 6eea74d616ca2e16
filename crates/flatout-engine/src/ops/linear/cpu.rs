//! Three products: forward with bias and activation behind the tile, and the gradients of input and weight.

use super::Linear;
use crate::EngineError;
use crate::activation::Activation;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;
use crate::ops::gelu;

/// The position in the scratch of what a GELU is applied to.
const BEFORE_GELU: usize = 1;

impl<T: Real> CpuOperation<T> for Linear {
    fn scratch(&self, _gemm: &GemmSpace<T>, _workers: usize) -> Vec<usize> {
        // The gradient before the activation; without one it is the output's own. What a GELU is applied to.
        let (fused, values) = (self.activation != Activation::None, self.rows * self.outputs);
        vec![
            if fused || self.gelu { values } else { 0 },
            if self.gelu { values } else { 0 },
        ]
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        let (input, weight, bias, mut output) = (io.input(0), io.parameter(0), io.parameter(1), io.output(0));
        let mut before = io.scratch(BEFORE_GELU);
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
            c: Parts::new(if self.gelu {
                &mut before[..]
            } else {
                &mut output[..]
            }),
            stride: self.outputs,
            accumulate: false,
            epilogue: Some(&finish),
        };
        io.gemm().multiply(io.pool(), &product);
        if self.gelu {
            gelu::apply_all(io, &before, &mut output);
        }
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else {
            return;
        };
        let mut scratch = io.scratch(0);
        if self.gelu {
            gelu::slope_all(
                io,
                &gradient,
                &io.scratch_result(BEFORE_GELU),
                &mut scratch,
                false,
            );
            return self.backward_from(io, &scratch);
        }
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
