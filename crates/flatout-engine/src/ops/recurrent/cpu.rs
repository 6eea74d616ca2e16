//! The products of a layer over all time steps at once: projection of its inputs, gradients of weights and inputs.

use super::{Layers, SequenceOutput};
use crate::cpu::dropout::{drop_in_place, drop_into};
use crate::cpu::gemm::{Matrix, Product};
use crate::cpu::io::Io;
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use std::ops::Range;

impl Layers {
    /// Calls `use_input` with what feeds a layer: `[steps · batch, width]`.
    fn with_input<T: Real>(&self, io: &Io<T>, layer: usize, use_input: impl FnOnce(Matrix<T>)) {
        let rows = self.steps * self.batch;
        if layer == 0 {
            return use_input(Matrix::new(&io.input(0), rows, self.inputs));
        }
        let place = if self.drops(layer - 1) {
            self.layout().dropped(layer - 1)
        } else {
            self.layout().hidden(layer - 1)
        };
        use_input(Matrix::new(&io.scratch_result(place), rows, self.stack.hidden));
    }

    /// Columns of the layer's input weight, and how many of them change with time.
    pub fn widths(&self, layer: usize) -> (usize, usize) {
        if layer == 0 {
            (self.inputs + self.constants, self.inputs)
        } else {
            (self.stack.hidden, self.stack.hidden)
        }
    }

    /// Gates of all time steps = input · W_ihᵀ.
    pub fn project<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (width, changing) = self.widths(layer);
        let weight = io.parameter(4 * layer);
        let mut gates = io.scratch(self.layout().gates(layer));
        self.with_input(io, layer, |input| {
            let product = Product {
                a: &input,
                b: &Matrix::strided(&weight, self.gate_width(), changing, width).transposed(),
                c: Parts::new(&mut gates),
                stride: self.gate_width(),
                accumulate: false,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        });
    }

    /// What is added to the gates at every time step: the biases, and the constant input's share. Of `bias_hh` only the
    /// first `recurrent_bias` values count here.
    pub fn offsets<T: Real>(&self, io: &Io<T>, layer: usize, recurrent_bias: usize) {
        let columns = self.gate_width();
        let (one, two) = (io.parameter(4 * layer + 2), io.parameter(4 * layer + 3));
        let mut offset = io.scratch(self.layout().offset());
        for row in offset.chunks_exact_mut(columns) {
            row.copy_from_slice(&one);
            for (value, &two) in row.iter_mut().zip(&two[..recurrent_bias]) {
                *value += two;
            }
        }
        if layer == 0 && self.constants > 0 {
            let (weight, constant) = (io.parameter(0), io.input(1));
            let width = self.inputs + self.constants;
            let product = Product {
                a: &Matrix::new(&constant, self.batch, self.constants),
                b: &Matrix::strided(&weight[self.inputs..], columns, self.constants, width).transposed(),
                c: Parts::new(&mut offset),
                stride: columns,
                accumulate: true,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        }
    }

    /// Dropout on what the next layer sees.
    pub fn drop_states<T: Real>(&self, io: &Io<T>, layer: usize) {
        if self.drops(layer) {
            let source = io.scratch_result(self.layout().hidden(layer));
            let mut target = io.scratch(self.layout().dropped(layer));
            drop_into(io, layer as u64, self.stack.dropout, &source, &mut target, false);
        }
    }

    /// The states of the last layer become the output.
    pub fn write_output<T: Real>(&self, io: &Io<T>) {
        let hidden = io.scratch_result(self.layout().hidden(self.stack.layers - 1));
        let mut output = io.output(0);
        let first = match self.stack.output {
            SequenceOutput::Last => hidden.len() - output.len(),
            SequenceOutput::All => 0,
        };
        output.copy_from_slice(&hidden[first..]);
    }

    /// Calls `use_gradient` with the gradient of a layer's states, of all steps or of the last.
    pub fn with_upstream<T: Real>(
        &self,
        io: &Io<T>,
        layer: usize,
        use_gradient: impl FnOnce(&[T], SequenceOutput),
    ) {
        if layer + 1 < self.stack.layers {
            use_gradient(
                &io.scratch_result(self.layout().d_sequence()),
                SequenceOutput::All,
            );
        } else if let Some(gradient) = io.output_gradient(0) {
            use_gradient(&gradient, self.stack.output);
        }
    }

    /// The gradient of the input weight out of the gates' gradients, the constant's columns included.
    pub fn input_weight_gradient<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (width, _) = self.widths(layer);
        let gates = io.scratch_result(self.layout().gates(layer));
        let mut target = io.parameter_gradient(4 * layer);
        let rows = self.steps * self.batch;
        self.with_input(io, layer, |input| {
            let gates = Matrix::new(&gates, rows, self.gate_width());
            add_weight_gradient(io, gates, input, &mut target, width);
        });
        if layer == 0 && self.constants > 0 {
            let (constant, sums) = (io.input(1), io.scratch_result(self.layout().offset()));
            let sums = Matrix::new(&sums, self.batch, self.gate_width());
            let constant = Matrix::new(&constant, self.batch, self.constants);
            add_weight_gradient(io, sums, constant, &mut target[self.inputs..], width);
        }
    }

    /// The gradient of what fed the layer: the states below, or the operation's inputs.
    pub fn input_gradients<T: Real>(&self, io: &Io<T>, layer: usize) {
        let layout = self.layout();
        let (width, changing) = self.widths(layer);
        let weight = io.parameter(4 * layer);
        let multiply =
            |gates: &[T], rows: usize, columns: Range<usize>, target: &mut [T], accumulate: bool| {
                let product = Product {
                    a: &Matrix::new(gates, rows, self.gate_width()),
                    b: &Matrix::strided(&weight[columns.start..], self.gate_width(), columns.len(), width),
                    stride: columns.len(),
                    c: Parts::new(target),
                    accumulate,
                    epilogue: None,
                };
                io.gemm().multiply(io.pool(), &product);
            };
        let gates = io.scratch_result(layout.gates(layer));
        let rows = self.steps * self.batch;
        if layer > 0 {
            let mut target = io.scratch(layout.d_sequence());
            multiply(&gates, rows, 0..changing, &mut target, false);
            if self.drops(layer - 1) {
                drop_in_place(io, (layer - 1) as u64, self.stack.dropout, &mut target);
            }
            return;
        }
        if let Some((mut target, accumulate)) = io.input_gradient(0) {
            multiply(&gates, rows, 0..changing, &mut target, accumulate);
        }
        if self.constants > 0
            && let Some((mut target, accumulate)) = io.input_gradient(1)
        {
            let sums = io.scratch_result(layout.offset());
            multiply(&sums, self.batch, self.inputs..width, &mut target, accumulate);
        }
    }
}

/// `target += gradientᵀ · input`.
pub fn add_weight_gradient<T: Real>(
    io: &Io<T>,
    gradient: Matrix<T>,
    input: Matrix<T>,
    target: &mut [T],
    stride: usize,
) {
    let product = Product {
        a: &gradient.transposed(),
        b: &input,
        c: Parts::new(target),
        stride,
        accumulate: true,
        epilogue: None,
    };
    io.gemm().multiply(io.pool(), &product);
}

/// The values of some rows of the time step that begins at row `first`.
pub fn at(first: usize, rows: &Range<usize>, width: usize) -> Range<usize> {
    (first + rows.start) * width..(first + rows.end) * width
}

pub fn add<T: Real>(target: &mut [T], source: &[T]) {
    target
        .iter_mut()
        .zip(source)
        .for_each(|(sum, &value)| *sum += value);
}
