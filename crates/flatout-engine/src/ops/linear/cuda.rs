//! Three products by cuBLASLt, bias and ReLU behind the first; layers with few outputs by kernels of their own.

use super::Linear;
use crate::activation::Activation;
use crate::cuda::columns::Columns;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine, Matrix, Number};
use crate::ops::residual::vector;

/// Below this many outputs a product of cuBLASLt would mostly multiply padding.
const NARROW: usize = 8;

/// The position in the scratch of what a GELU is applied to.
const BEFORE_GELU: usize = 2;

impl CudaOperation for Linear {
    fn kernels() -> &'static str {
        include_str!("linear.cu")
    }

    fn scratch(&self, machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        let before = self.rows * self.outputs * machine.precision.number().bytes();
        let narrow = Columns::new(self.rows, self.inputs).bytes(self.outputs);
        let weights = if self.narrow() { narrow } else { 0 };
        let curved = if self.gelu { before } else { 0 };
        Ok(vec![before, self.columns().bytes(1).max(weights), curved])
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
            return io
                .machine
                .blocks("narrow_forward", (self.rows.div_ceil(8), 1), 256, &arguments);
        }
        let relu = self.activation == Activation::Relu;
        let input = io.matrix(io.input(0), self.rows, self.inputs);
        let weight = io.matrix(io.parameter(0), self.outputs, self.inputs).transposed();
        let target = if self.gelu {
            io.scratch(BEFORE_GELU)
        } else {
            io.output(0)
        };
        let output = io.matrix(target, self.rows, self.outputs);
        io.machine
            .multiply_with_bias(input, weight, output, io.parameter(1), relu)?;
        if self.gelu {
            let (count, vector) = (self.rows * self.outputs, vector(self.rows * self.outputs));
            let arguments = [
                Argument::Address(target),
                Argument::Address(io.output(0)),
                Argument::Long((count / vector) as i64),
            ];
            let name = format!("gelu_forward_{vector}");
            return io.machine.each(&name, count / vector, &arguments);
        }
        if matches!(self.activation, Activation::Tanh | Activation::Sigmoid) {
            let count = self.rows * self.outputs;
            let arguments = [
                Argument::Address(io.output(0)),
                Argument::Long(count as i64),
                Argument::Word(activation),
            ];
            io.machine.each("activate", count, &arguments)?;
        }
        Ok(())
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let before = self.before(io, gradient)?;
        if self.narrow() {
            return self.narrow_backward(io, before);
        }
        let before = io.matrix(before, self.rows, self.outputs);
        let input = io.matrix(io.input(0), self.rows, self.inputs);
        let target = Matrix::new(io.parameter_gradient(0), self.outputs, self.inputs, Number::F32);
        // Small batches leave most of the card idle: the weight's gradient goes beside the layers below.
        io.machine.aside(|| {
            self.columns()
                .add(io.machine, io.scratch(1), io.parameter_gradient(1))?;
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
        self.outputs < NARROW && !self.gelu
    }

    fn columns(&self) -> Columns {
        Columns::new(self.rows, self.outputs)
    }

    /// The address of the gradient before the activation; its sums by column go to the parts.
    fn before(&self, io: &Io, gradient: u64) -> Result<u64, CudaError> {
        let (rows, outputs) = (
            Argument::Long(self.rows as i64),
            Argument::Word(self.outputs as i32),
        );
        let parts = Argument::Address(io.scratch(1));
        if self.gelu {
            let arguments = [
                Argument::Address(gradient),
                Argument::Address(io.scratch(BEFORE_GELU)),
                Argument::Address(io.scratch(0)),
                parts,
                rows,
                outputs,
            ];
            self.columns().launch(io.machine, "before_gelu", &arguments)?;
            return Ok(io.scratch(0));
        }
        if self.activation == Activation::None {
            let arguments = [Argument::Address(gradient), parts, rows, outputs];
            self.columns().launch(io.machine, "column_sums", &arguments)?;
            return Ok(gradient);
        }
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.output(0)),
            Argument::Address(io.scratch(0)),
            parts,
            rows,
            outputs,
            Argument::Word(self.activation.code()),
        ];
        self.columns()
            .launch(io.machine, "before_activation", &arguments)?;
        Ok(io.scratch(0))
    }

    fn narrow_backward(&self, io: &Io, before: u64) -> Result<(), CudaError> {
        let sizes = [
            Argument::Long(self.rows as i64),
            Argument::Word(self.inputs as i32),
            Argument::Word(self.outputs as i32),
        ];
        let (parts, columns) = (io.scratch(1), Columns::new(self.rows, self.inputs));
        let given = [
            Argument::Address(before),
            Argument::Address(io.input(0)),
            Argument::Address(parts),
        ];
        io.machine.aside(|| {
            self.columns().add(io.machine, parts, io.parameter_gradient(1))?;
            columns.launch(io.machine, "narrow_weights", &[&given[..], &sizes].concat())?;
            (0..self.outputs).try_for_each(|output| {
                let target = io.parameter_gradient(0) + (output * self.inputs * 4) as u64;
                columns.add(io.machine, parts + (output * columns.bytes(1)) as u64, target)
            })
        })?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let arguments = [
            &[
                Argument::Address(before),
                Argument::Address(io.master(0)),
                Argument::Address(target),
            ],
            &sizes[..],
            &[Argument::Word(i32::from(add))],
        ]
        .concat();
        columns.launch(io.machine, "narrow_inputs", &arguments)
    }
}
