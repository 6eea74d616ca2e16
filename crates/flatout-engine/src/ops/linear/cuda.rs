//! Three products by cuBLASLt, bias and ReLU behind the first; layers with few outputs by kernels of their own.

use super::Linear;
use crate::activation::Activation;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine, Matrix, Number};

/// Below this many outputs a product of cuBLASLt would mostly multiply padding.
const NARROW: usize = 8;
/// Column sums are made in at most so many parts, in this order added up.
const PARTS: usize = 64;

impl CudaOperation for Linear {
    fn kernels() -> &'static str {
        include_str!("linear.cu")
    }

    fn scratch(&self, machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        let before = self.rows * self.outputs * machine.precision.number().bytes();
        let columns = if self.narrow() { self.outputs * (self.inputs + 1) } else { self.outputs };
        Ok(vec![before, PARTS * columns * 4])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let activation = self.activation.code();
        if self.narrow() {
            let arguments = [
                Argument::Address(io.input(0)),
                Argument::Address(io.master(0)),
                Argument::Address(io.master(1)),
                Argument::Address(io.output(0)),
                Argument::Long(self.rows as i64),
                Argument::Word(self.inputs as i32),
                Argument::Word(self.outputs as i32),
                Argument::Word(activation),
            ];
            return io.machine.blocks("narrow_forward", (self.rows.div_ceil(8), 1), 256, &arguments);
        }
        let relu = self.activation == Activation::Relu;
        let input = io.matrix(io.input(0), self.rows, self.inputs);
        let weight = io.matrix(io.parameter(0), self.outputs, self.inputs).transposed();
        let output = io.matrix(io.output(0), self.rows, self.outputs);
        io.machine.multiply_with_bias(input, weight, output, io.parameter(1), relu)?;
        if matches!(self.activation, Activation::Tanh | Activation::Sigmoid) {
            let count = self.rows * self.outputs;
            let arguments = [Argument::Address(io.output(0)), Argument::Long(count as i64), Argument::Word(activation)];
            io.machine.each("activate", count, &arguments)?;
        }
        Ok(())
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else { return Ok(()) };
        let parts = self.rows.div_ceil(32).min(PARTS);
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.output(0)),
            Argument::Address(io.scratch(0)),
            Argument::Address(io.scratch(1)),
            Argument::Long(self.rows as i64),
            Argument::Word(self.outputs as i32),
            Argument::Word(self.activation.code()),
        ];
        io.machine.blocks("linear_before", (self.outputs.div_ceil(32), parts), 256, &arguments)?;
        let add_bias = || add_parts(io, io.scratch(1), io.parameter_gradient(1), parts, self.outputs);
        let before = if self.activation == Activation::None { gradient } else { io.scratch(0) };
        if self.narrow() {
            add_bias()?;
            return self.narrow_backward(io, before, parts);
        }
        let before = io.matrix(before, self.rows, self.outputs);
        let input = io.matrix(io.input(0), self.rows, self.inputs);
        let target = Matrix::new(io.parameter_gradient(0), self.outputs, self.inputs, Number::F32);
        // Small batches leave most of the card idle: the weight's gradient goes beside the layers below.
        io.machine.aside(|| {
            add_bias()?;
            io.machine.multiply(before.transposed(), input, target, true)
        })?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let weight = io.matrix(io.parameter(0), self.outputs, self.inputs);
        let target = io.matrix(target, self.rows, self.inputs);
        io.machine.multiply(before, weight, target, add)
    }
}

impl Linear {
    fn narrow(&self) -> bool {
        self.outputs < NARROW
    }

    fn narrow_backward(&self, io: &Io, before: u64, parts: usize) -> Result<(), CudaError> {
        let sizes = [
            Argument::Long(self.rows as i64),
            Argument::Word(self.inputs as i32),
            Argument::Word(self.outputs as i32),
        ];
        let arguments = [
            &[Argument::Address(before), Argument::Address(io.input(0)), Argument::Address(io.scratch(1))],
            &sizes[..],
        ]
        .concat();
        io.machine.blocks("narrow_weight_parts", (self.inputs.div_ceil(32), parts), 256, &arguments)?;
        add_parts(io, io.scratch(1), io.parameter_gradient(0), parts, self.outputs * self.inputs)?;
        let Some((target, add)) = io.input_gradient(0) else { return Ok(()) };
        let arguments = [
            &[Argument::Address(before), Argument::Address(io.master(0)), Argument::Address(target)],
            &sizes[..],
            &[Argument::Word(i32::from(add))],
        ]
        .concat();
        io.machine.each("narrow_input_gradient", self.rows * self.inputs, &arguments)
    }
}

/// `target += Σ parts`, in the order of the parts.
pub(crate) fn add_parts(io: &Io, parts: u64, target: u64, count: usize, columns: usize) -> Result<(), CudaError> {
    let arguments = [
        Argument::Address(parts),
        Argument::Address(target),
        Argument::Word(count as i32),
        Argument::Word(columns as i32),
    ];
    io.machine.each("add_parts", columns, &arguments)
}
