//! Three matmuls by cuBLASLt over unfolded rows, bias and ReLU in the first. One matmul over all places rounds once, and writes the
//! output once; place by place it would be read and written as often as there are places.

use super::Conv1d;
use crate::activation::Activation;
use crate::cuda::columns::Columns;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine, Matrix, Number};
use crate::ops::residual::vector;

/// Scratch: unfolded rows; the weight in their order, then its gradient in f32; sums by column; the gradient before the activation;
/// the gradient of the rows.
const ROWS: usize = 0;
const WEIGHT: usize = 1;
const WEIGHT_GRADIENT: usize = 2;
const PARTS: usize = 3;
const BEFORE: usize = 4;
const ROWS_GRADIENT: usize = 5;

impl CudaOperation for Conv1d {
    fn kernels() -> &'static str {
        include_str!("conv1d.cu")
    }

    fn scratch(&self, machine: &Machine, site: &Site) -> Result<Vec<usize>, CudaError> {
        let value = machine.precision.number().bytes();
        let rows = if self.is_plain() {
            0
        } else {
            self.rows() * self.patch() * value
        };
        let wanted = site.node.input_gradients.first().copied().flatten().is_some();
        let fused = self.activation != Activation::None;
        let weights = self.patch() * self.filters;
        Ok(vec![
            rows,
            weights * value,
            weights * 4,
            self.columns().bytes(1),
            if fused {
                self.rows() * self.filters * value
            } else {
                0
            },
            if wanted {
                self.rows() * self.patch() * value
            } else {
                0
            },
        ])
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        let [filters, channels, places] = self.weight_sizes();
        let arguments = [
            Argument::Address(io.master(0)),
            Argument::Address(io.scratch(WEIGHT)),
            filters,
            channels,
            places,
        ];
        io.machine
            .each("conv_weight", self.patch() * self.filters, &arguments)?;
        if !self.is_plain() {
            let (vector, sizes) = self.sizes();
            let given = [
                Argument::Address(io.input(0)),
                Argument::Address(io.scratch(ROWS)),
            ];
            let threads = self.rows() * self.patch() / vector;
            let arguments = [&given[..], &sizes].concat();
            io.machine
                .each(&format!("unfold_steps_{vector}"), threads, &arguments)?;
        }
        let weight = io.matrix(io.scratch(WEIGHT), self.filters, self.patch());
        let output = io.matrix(io.output(0), self.rows(), self.filters);
        let relu = self.activation == Activation::Relu;
        io.machine.multiply_with_bias(
            self.unfolded(io),
            weight.transposed(),
            output,
            io.parameter(1),
            relu,
        )?;
        if matches!(self.activation, Activation::Tanh | Activation::Sigmoid) {
            let count = self.rows() * self.filters;
            let arguments = [
                Argument::Address(io.output(0)),
                Argument::Long(count as i64),
                Argument::Word(self.activation.code()),
            ];
            io.machine.each("activate", count, &arguments)?;
        }
        Ok(())
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        let Some(gradient) = io.output_gradient(0) else {
            return Ok(());
        };
        let before = io.matrix(self.before(io, gradient)?, self.rows(), self.filters);
        let own = Matrix::new(
            io.scratch(WEIGHT_GRADIENT),
            self.filters,
            self.patch(),
            Number::F32,
        );
        io.machine.aside(|| {
            self.columns()
                .add(io.machine, io.scratch(PARTS), io.parameter_gradient(1))?;
            io.machine
                .multiply(before.transposed(), self.unfolded(io), own, false)?;
            let [filters, channels, places] = self.weight_sizes();
            let arguments = [
                Argument::Address(own.address),
                Argument::Address(io.parameter_gradient(0)),
                filters,
                channels,
                places,
            ];
            let count = self.patch() * self.filters;
            io.machine.each("conv1d_weight_gradient", count, &arguments)
        })?;
        let Some((target, add)) = io.input_gradient(0) else {
            return Ok(());
        };
        let weight = io.matrix(io.scratch(WEIGHT), self.filters, self.patch());
        if self.is_plain() {
            let target = io.matrix(target, self.rows(), self.patch());
            return io.machine.multiply(before, weight, target, add);
        }
        let rows = io.matrix(io.scratch(ROWS_GRADIENT), self.rows(), self.patch());
        io.machine.multiply(before, weight, rows, false)?;
        let (vector, sizes) = self.sizes();
        let given = [Argument::Address(rows.address), Argument::Address(target)];
        let arguments = [&given[..], &sizes, &[Argument::Word(i32::from(add))]].concat();
        let threads = self.steps * self.batch * self.channels / vector;
        io.machine
            .each(&format!("fold_steps_{vector}"), threads, &arguments)
    }
}

impl Conv1d {
    fn columns(&self) -> Columns {
        Columns::new(self.rows(), self.filters)
    }

    /// The rows that outputs are made of.
    fn unfolded(&self, io: &Io) -> Matrix {
        let address = if self.is_plain() {
            io.input(0)
        } else {
            io.scratch(ROWS)
        };
        io.matrix(address, self.rows(), self.patch())
    }

    fn weight_sizes(&self) -> [Argument; 3] {
        [self.filters, self.channels, self.causal.taps].map(|value| Argument::Word(value as i32))
    }

    /// Channels per access, and the sizes that both kernels take.
    fn sizes(&self) -> (usize, [Argument; 7]) {
        let (vector, causal) = (vector(self.channels), &self.causal);
        let sizes = [
            self.steps,
            self.batch,
            self.channels / vector,
            causal.taps,
            causal.dilation,
            causal.stride,
            causal.outputs,
        ];
        (vector, sizes.map(|value| Argument::Word(value as i32)))
    }

    /// The address of the gradient before the activation; its sums by column go to the parts.
    fn before(&self, io: &Io, gradient: u64) -> Result<u64, CudaError> {
        let (rows, filters) = (
            Argument::Long(self.rows() as i64),
            Argument::Word(self.filters as i32),
        );
        let parts = Argument::Address(io.scratch(PARTS));
        if self.activation == Activation::None {
            let arguments = [Argument::Address(gradient), parts, rows, filters];
            self.columns().launch(io.machine, "column_sums", &arguments)?;
            return Ok(gradient);
        }
        let arguments = [
            Argument::Address(gradient),
            Argument::Address(io.output(0)),
            Argument::Address(io.scratch(BEFORE)),
            parts,
            rows,
            filters,
            Argument::Word(self.activation.code()),
        ];
        self.columns()
            .launch(io.machine, "before_activation", &arguments)?;
        Ok(io.scratch(BEFORE))
    }
}
