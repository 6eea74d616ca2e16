//! What feeds the recurrence of a stack and what is made of its gradients: products over all time steps of a layer at once.

use super::layout::Layout;
use super::persistent::Persistent;
use crate::cuda::columns::Columns;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError, Machine, Matrix, Number};
use crate::ops::concat::copy_columns;
use crate::ops::recurrent::{Layers, SequenceOutput};
use std::ops::Range;

impl Layers {
    pub(crate) fn layout_on_card(&self) -> Layout {
        Layout::new(self.stack.layers)
    }

    /// Hidden units with padding.
    pub(crate) fn padded(&self, machine: &Machine) -> usize {
        self.persistent(machine)
            .map_or(self.stack.hidden, |persistent| persistent.hidden)
    }

    /// Values from row to row of a layer's input: a multiple of 16 bytes, which the products want.
    pub(crate) fn stride(&self, layer: usize, machine: &Machine) -> usize {
        if layer == 0 {
            (self.inputs + self.constants).next_multiple_of(8)
        } else {
            self.padded(machine)
        }
    }

    /// Units, units with padding, and how the gates' columns lie: see `gate_column` in lstm.cu.
    pub(crate) fn order(&self, machine: &Machine) -> [Argument; 3] {
        let order = match self.persistent(machine) {
            None => 0,
            Some(_) if self.gates == 4 => 1,
            Some(_) => 2,
        };
        [
            Argument::Word(self.stack.hidden as i32),
            Argument::Word(self.padded(machine) as i32),
            Argument::Word(order),
        ]
    }

    /// Address of what feeds a layer.
    pub(crate) fn layer_input(&self, io: &Io, layer: usize) -> u64 {
        match layer {
            0 => io.scratch(Layout::JOINED),
            _ if self.drops(layer - 1) && io.training => io.scratch(Layout::dropped(layer - 1)),
            _ => io.scratch(Layout::hidden(layer - 1)),
        }
    }

    /// The layer's weights in the order and width of the products.
    pub(crate) fn prepare(&self, io: &Io, layer: usize) -> Result<(), CudaError> {
        let [size, padded, order] = self.order(io.machine);
        let (stride, columns) = (self.stride(layer, io.machine), self.widths(layer).0);
        let values = 4 * self.padded(io.machine) * stride;
        let arguments = [
            Argument::Address(io.master(4 * layer)),
            Argument::Address(io.scratch(Layout::weight(layer))),
            size,
            padded,
            Argument::Word(columns as i32),
            Argument::Word(stride as i32),
            order,
        ];
        io.machine.each("lstm_weight", values, &arguments)?;
        let arguments = [
            Argument::Address(io.master(4 * layer + 2)),
            Argument::Address(io.master(4 * layer + 3)),
            Argument::Address(io.scratch(Layout::bias(layer))),
            size,
            padded,
            order,
        ];
        io.machine
            .each("lstm_bias", 4 * self.padded(io.machine), &arguments)
    }

    /// Gates of some time steps = input · W_ihᵀ + b.
    pub(crate) fn project_on_card(
        &self,
        io: &Io,
        layer: usize,
        steps: &Range<usize>,
    ) -> Result<(), CudaError> {
        let (columns, stride) = (4 * self.padded(io.machine), self.stride(layer, io.machine));
        let (first, rows, value) = (
            steps.start * self.batch,
            steps.len() * self.batch,
            io.number().bytes(),
        );
        let at = |address: u64, width: usize| address + (first * width * value) as u64;
        let input = io.matrix(at(self.layer_input(io, layer), stride), rows, stride);
        let weight = io
            .matrix(io.scratch(Layout::weight(layer)), columns, stride)
            .transposed();
        let gates = io.matrix(at(io.scratch(Layout::gates(layer)), columns), rows, columns);
        io.machine
            .multiply_with_bias(input, weight, gates, io.scratch(Layout::bias(layer)), false)
    }

    /// Dropout on what the next layer sees of some steps.
    pub(crate) fn drop_on_card(&self, io: &Io, layer: usize, steps: &Range<usize>) -> Result<(), CudaError> {
        if !self.drops(layer) || !io.training {
            return Ok(());
        }
        let (padded, rows) = (
            self.padded(io.machine),
            steps.start * self.batch..steps.end * self.batch,
        );
        let at = |block: usize| io.scratch(block) + (rows.start * padded * io.number().bytes()) as u64;
        let places = (at(Layout::hidden(layer)), at(Layout::dropped(layer)));
        self.dropout_on_card(io, layer, places, rows, padded)
    }

    /// The gradient of some steps' states of the layer below, through this layer's input weight.
    pub(crate) fn pass_down_on_card(
        &self,
        io: &Io,
        layer: usize,
        steps: &Range<usize>,
    ) -> Result<(), CudaError> {
        if layer == 0 {
            return Ok(());
        }
        let (padded, rows) = (
            self.padded(io.machine),
            steps.start * self.batch..steps.end * self.batch,
        );
        let at = |block: usize, width: usize| {
            io.scratch(block) + (rows.start * width * io.number().bytes()) as u64
        };
        let gates = io.matrix(at(Layout::gates(layer), 4 * padded), rows.len(), 4 * padded);
        let weight = io.matrix(io.scratch(Layout::weight(layer)), 4 * padded, padded);
        let upstream = at(self.layout_on_card().upstream(), padded);
        io.machine
            .multiply(gates, weight, io.matrix(upstream, rows.len(), padded), false)?;
        match self.drops(layer - 1) {
            true => self.dropout_on_card(io, layer - 1, (upstream, upstream), rows, padded),
            false => Ok(()),
        }
    }

    /// Rows of the sums that a bias' gradient is made of.
    pub(crate) fn bias_parts(&self, machine: &Machine) -> usize {
        let persistent = self.persistent(machine);
        let launches = self.launches(machine).len();
        persistent.map_or(self.gate_columns().parts(), |persistent| {
            launches * persistent.tiles(self.batch)
        })
    }

    pub(crate) fn weight_gradients_on_card(&self, io: &Io, layer: usize) -> Result<(), CudaError> {
        let [size, padded, order] = self.order(io.machine);
        let layout = self.layout_on_card();
        let (rows, units, value) = (
            self.steps * self.batch,
            self.padded(io.machine),
            io.number().bytes(),
        );
        let (columns, stride) = (4 * units, self.stride(layer, io.machine));
        let gates = io.matrix(io.scratch(Layout::gates(layer)), rows, columns);
        let buffer = io.scratch(layout.weight_gradient());
        // A GRU's parameters of the state belong to other columns than those of the input.
        let of_state = match order {
            Argument::Word(2) => Argument::Word(3),
            other => other,
        };
        let add = |target: u64, width: usize, stride: usize, order: Argument| {
            let arguments = [
                Argument::Address(buffer),
                Argument::Address(target),
                size,
                padded,
                Argument::Word(width as i32),
                Argument::Word(stride as i32),
                order,
            ];
            io.machine
                .each("lstm_weight_gradient", columns * stride, &arguments)
        };
        let input = io.matrix(self.layer_input(io, layer), rows, stride);
        io.machine.multiply(
            gates.transposed(),
            input,
            Matrix::new(buffer, columns, stride, Number::F32),
            false,
        )?;
        add(
            io.parameter_gradient(4 * layer),
            self.widths(layer).0,
            stride,
            order,
        )?;
        if self.steps > 1 {
            let later = rows - self.batch;
            let after = io.scratch(Layout::gates(layer)) + (self.batch * columns * value) as u64;
            let gates = io.matrix(after, later, columns);
            let hidden = io.matrix(io.scratch(Layout::hidden(layer)), later, units);
            io.machine.multiply(
                gates.transposed(),
                hidden,
                Matrix::new(buffer, columns, units, Number::F32),
                false,
            )?;
            add(
                io.parameter_gradient(4 * layer + 1),
                self.stack.hidden,
                units,
                of_state,
            )?;
        }
        let parts = self.bias_parts(io.machine);
        let arguments = [
            Argument::Address(io.scratch(Layout::bias_parts(layer))),
            Argument::Word(parts as i32),
            Argument::Address(io.parameter_gradient(4 * layer + 2)),
            Argument::Address(io.parameter_gradient(4 * layer + 3)),
            size,
            padded,
            order,
        ];
        io.machine.each("lstm_bias_gradient", columns, &arguments)
    }

    /// Gradients of what was joined. A constant's is the product of the gates' sum over time: one small product.
    pub(crate) fn input_gradients_on_card(&self, io: &Io) -> Result<(), CudaError> {
        let layout = self.layout_on_card();
        let (columns, stride) = (4 * self.padded(io.machine), self.stride(0, io.machine));
        let (gates, weight) = (
            io.scratch(Layout::gates(0)),
            io.matrix(io.scratch(Layout::weight(0)), columns, stride),
        );
        let target = io.scratch(layout.d_input());
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
        let sums = io.scratch(layout.time_sum());
        self.sum_time_on_card(io, gates, sums, columns)?;
        io.machine.multiply(
            io.matrix(sums, self.batch, columns),
            weight,
            io.matrix(target, self.batch, stride),
            false,
        )?;
        copy_columns(
            io,
            self.batch,
            self.constants,
            (target, stride, self.inputs),
            (gradient, self.constants, 0),
            add,
        )
    }

    /// Bytes of the scratch blocks, in the order of [`Layout`], for the way that is chosen at present.
    pub(crate) fn sizes_on_card(&self, machine: &Machine) -> Vec<usize> {
        let persistent = self.persistent(machine);
        let (value, rows) = (machine.precision.number().bytes(), self.steps * self.batch);
        let padded = self.padded(machine);
        let sequence = rows * padded * value;
        let mut sizes = vec![rows * self.stride(0, machine) * value];
        let parts = self.bias_parts(machine);
        for layer in 0..self.stack.layers {
            let cells = persistent
                .as_ref()
                .map_or(sequence, |p| p.cell_bytes(self.steps, self.batch));
            let fragments = persistent.as_ref().map_or(0, Persistent::packed_bytes);
            sizes.extend([
                rows * 4 * padded * value,
                cells,
                sequence,
                if self.drops(layer) { sequence } else { 0 },
                4 * padded * self.stride(layer, machine) * value,
                4 * padded * value,
                fragments,
                fragments,
                parts * 4 * padded * 4,
                persistent.as_ref().map_or(0, |p| p.carry_bytes(self.batch)),
            ]);
        }
        let widest = (0..self.stack.layers)
            .map(|layer| self.stride(layer, machine))
            .max()
            .unwrap_or(0)
            .max(padded);
        sizes.extend([
            sequence,
            4 * padded * widest * 4,
            self.batch * 4 * padded * value,
            rows * self.stride(0, machine) * value,
            self.batch * padded * value,
            self.batch * padded * 4,
        ]);
        sizes
    }

    /// The last layer's states become the output.
    pub(crate) fn output_on_card(&self, io: &Io) -> Result<(), CudaError> {
        let last = io.scratch(Layout::hidden(self.stack.layers - 1));
        let (size, padded, value) = (self.stack.hidden, self.padded(io.machine), io.number().bytes());
        let (first, rows) = match self.stack.output {
            SequenceOutput::Last => ((self.steps - 1) * self.batch, self.batch),
            SequenceOutput::All => (0, self.steps * self.batch),
        };
        let source = last + (first * padded * value) as u64;
        copy_columns(
            io,
            rows,
            size,
            (source, padded, 0),
            (io.output(0), size, 0),
            false,
        )
    }

    /// The output's gradient as the last layer's states have it: with their padding.
    pub(crate) fn upstream_on_card(&self, io: &Io, gradient: u64) -> Result<u64, CudaError> {
        let layout = self.layout_on_card();
        let (size, padded) = (self.stack.hidden, self.padded(io.machine));
        let last_only = self.stack.output == SequenceOutput::Last;
        if padded == size {
            return Ok(gradient);
        }
        let rows = if last_only {
            self.batch
        } else {
            self.steps * self.batch
        };
        io.machine
            .queue()
            .clear(io.scratch(layout.upstream()), rows * padded * io.number().bytes())?;
        copy_columns(
            io,
            rows,
            size,
            (gradient, size, 0),
            (io.scratch(layout.upstream()), padded, 0),
            false,
        )?;
        Ok(io.scratch(layout.upstream()))
    }

    /// Sums over all rows of the gates' columns, where the recurrence does not make them itself.
    pub(crate) fn gate_columns(&self) -> Columns {
        Columns::new(self.steps * self.batch, self.gate_width())
    }
}
