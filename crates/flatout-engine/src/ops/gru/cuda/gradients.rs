//! Backward through time, then the gradients of weights, biases and inputs.

use super::super::Gru;
use super::Place;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError, Matrix, Number};
use crate::ops::concat::copy_columns;
use crate::ops::recurrent::SequenceOutput;

impl Gru {
    pub(super) fn backward_on_card(&self, io: &Io, gradient: u64) -> Result<(), CudaError> {
        let mut upstream = gradient;
        let mut last_only = self.stack.output == SequenceOutput::Last;
        let (rows, columns) = (self.steps * self.batch, self.gate_width());
        for layer in (0..self.stack.layers).rev() {
            for step in (0..self.steps).rev() {
                self.step_back_on_card(io, layer, step, upstream, last_only)?;
            }
            self.weight_gradients_on_card(io, layer)?;
            if layer > 0 {
                let gates = io.matrix(io.scratch(Place::gates(layer)), rows, columns);
                let weight = io.matrix(io.scratch(Place::weight(layer)), columns, self.stride(layer));
                (upstream, last_only) = (io.scratch(Place::UPSTREAM), false);
                let target = io.matrix(upstream, rows, self.stack.hidden);
                io.machine.multiply(gates, weight, target, false)?;
                if self.drops(layer - 1) {
                    self.dropout_on_card(io, layer - 1, (upstream, upstream), 0..rows, self.stack.hidden)?;
                }
            }
        }
        self.input_gradients_on_card(io)
    }

    fn step_back_on_card(
        &self,
        io: &Io,
        layer: usize,
        step: usize,
        upstream: u64,
        last_only: bool,
    ) -> Result<(), CudaError> {
        let (size, columns, last) = (self.stack.hidden, self.gate_width(), step + 1 == self.steps);
        let above = match last_only {
            true if last => upstream,
            true => 0,
            false => upstream + (step * self.batch * size * io.number().bytes()) as u64,
        };
        let before = match step {
            0 => 0,
            _ => self.at(io, Place::hidden(layer), step - 1, size),
        };
        let recurrent = self.at(io, Place::RECURRENT, step, columns);
        let arguments = [
            Argument::Address(self.at(io, Place::gates(layer), step, columns)),
            Argument::Address(recurrent),
            Argument::Address(self.at(io, Place::inner(layer), step, size)),
            Argument::Address(before),
            Argument::Address(if last { 0 } else { io.scratch(Place::D_HIDDEN) }),
            Argument::Address(above),
            Argument::Address(io.scratch(Place::STRAIGHT)),
            Argument::Long(self.batch as i64),
            Argument::Word(size as i32),
        ];
        io.machine
            .each("gru_cell_backward", self.batch * size, &arguments)?;
        if step == 0 {
            return Ok(());
        }
        let weight = io.matrix(io.parameter(4 * layer + 1), columns, size);
        let target = io.matrix(io.scratch(Place::D_HIDDEN), self.batch, size);
        io.machine
            .multiply(io.matrix(recurrent, self.batch, columns), weight, target, false)
    }

    fn weight_gradients_on_card(&self, io: &Io, layer: usize) -> Result<(), CudaError> {
        let (rows, columns, stride) = (self.steps * self.batch, self.gate_width(), self.stride(layer));
        let (gates, recurrent) = (io.scratch(Place::gates(layer)), io.scratch(Place::RECURRENT));
        let buffer = io.scratch(Place::WEIGHT_GRADIENT);
        let input = io.matrix(self.layer_input(io, layer), rows, stride);
        let target = Matrix::new(buffer, columns, stride, Number::F32);
        io.machine
            .multiply(io.matrix(gates, rows, columns).transposed(), input, target, false)?;
        let width = self.widths(layer).0;
        let arguments = [
            Argument::Address(buffer),
            Argument::Address(io.parameter_gradient(4 * layer)),
            Argument::Word(columns as i32),
            Argument::Word(width as i32),
            Argument::Word(stride as i32),
        ];
        io.machine
            .each("gru_weight_gradient", columns * width, &arguments)?;
        if self.steps > 1 {
            let (later, size) = (rows - self.batch, self.stack.hidden);
            let after = io.matrix(self.at(io, Place::RECURRENT, 1, columns), later, columns);
            let hidden = io.matrix(io.scratch(Place::hidden(layer)), later, size);
            let target = Matrix::new(io.parameter_gradient(4 * layer + 1), columns, size, Number::F32);
            io.machine.multiply(after.transposed(), hidden, target, true)?;
        }
        for (position, source) in [(2, gates), (3, recurrent)] {
            let parts = io.scratch(Place::BIAS_PARTS);
            let arguments = [
                Argument::Address(source),
                Argument::Address(parts),
                Argument::Long(rows as i64),
                Argument::Word(columns as i32),
            ];
            self.gate_columns()
                .launch(io.machine, "column_sums", &arguments)?;
            self.gate_columns()
                .add(io.machine, parts, io.parameter_gradient(4 * layer + position))?;
        }
        Ok(())
    }

    /// Gradients of what was joined. A constant's is the product of the gates' sum over time: one small product.
    fn input_gradients_on_card(&self, io: &Io) -> Result<(), CudaError> {
        let (columns, stride) = (self.gate_width(), self.stride(0));
        let (gates, weight) = (
            io.scratch(Place::gates(0)),
            io.matrix(io.scratch(Place::weight(0)), columns, stride),
        );
        let target = io.scratch(Place::D_INPUT);
        if let Some((gradient, add)) = io.input_gradient(0) {
            let rows = self.steps * self.batch;
            io.machine.multiply(
                io.matrix(gates, rows, columns),
                weight,
                io.matrix(target, rows, stride),
                false,
            )?;
            copy_columns(
                io,
                rows,
                self.inputs,
                (target, stride, 0),
                (gradient, self.inputs, 0),
                add,
            )?;
        }
        let Some((gradient, add)) = io.input_gradient(1) else {
            return Ok(());
        };
        let sums = io.scratch(Place::TIME_SUM);
        self.sum_time_on_card(io, gates, sums, columns)?;
        let product = io.matrix(target, self.batch, stride);
        io.machine
            .multiply(io.matrix(sums, self.batch, columns), weight, product, false)?;
        copy_columns(
            io,
            self.batch,
            self.constants,
            (target, stride, self.inputs),
            (gradient, self.constants, 0),
            add,
        )
    }
}
