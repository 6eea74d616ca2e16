//! The persistent kernel where the card and the size allow it and measurement prefers it. Else the inputs of all time steps by one
//! product a layer; the recurrence is one product and one kernel a step, all inside the step's graph; the weight gradients are one
//! product each again.

mod gradients;

use super::Gru;
use crate::cuda::io::{CudaOperation, Io, Site};
use crate::cuda::{Argument, CudaError, Machine};
use crate::ops::concat::copy_columns;
use crate::ops::recurrent::SequenceOutput;

/// The scratch blocks of a stack, by position.
struct Place;

impl Place {
    const JOINED: usize = 0;
    /// `[batch, 3 · hidden]`: the recurrent products of a step.
    const PRODUCTS: usize = 1;
    /// `[steps, batch, hidden]`: the gradient of a layer's states.
    const UPSTREAM: usize = 2;
    /// `[steps, batch, 3 · hidden]`: gradients of the recurrent products.
    const RECURRENT: usize = 3;
    /// `[3 · hidden, widest input]`, f32.
    const WEIGHT_GRADIENT: usize = 4;
    const BIAS_PARTS: usize = 5;
    const TIME_SUM: usize = 6;
    const D_INPUT: usize = 7;
    const D_HIDDEN: usize = 8;
    /// `[batch, hidden]`, f32.
    const STRAIGHT: usize = 9;
    const SHARED: usize = 10;

    fn of(layer: usize, which: usize) -> usize {
        Self::SHARED + layer * 5 + which
    }
    fn gates(layer: usize) -> usize {
        Self::of(layer, 0)
    }
    fn inner(layer: usize) -> usize {
        Self::of(layer, 1)
    }
    fn hidden(layer: usize) -> usize {
        Self::of(layer, 2)
    }
    fn dropped(layer: usize) -> usize {
        Self::of(layer, 3)
    }
    fn weight(layer: usize) -> usize {
        Self::of(layer, 4)
    }
}

impl CudaOperation for Gru {
    fn kernels() -> &'static str {
        include_str!("gru.cu")
    }

    fn scratch(&self, machine: &Machine, _site: &Site) -> Result<Vec<usize>, CudaError> {
        self.either_way(machine, |persistent| match persistent {
            Some(_) => self.sizes_on_card(machine),
            None => self.stepwise_sizes(machine),
        })
    }

    fn forward(&self, io: &Io) -> Result<(), CudaError> {
        self.choose_on_card(io, &|| self.forward_as_chosen(io))?;
        self.forward_as_chosen(io)
    }

    fn backward(&self, io: &Io) -> Result<(), CudaError> {
        match (self.persistent(io.machine), io.output_gradient(0)) {
            (_, None) => Ok(()),
            (Some(persistent), Some(gradient)) => self.persistent_backward(io, &persistent, gradient),
            (None, Some(gradient)) => self.backward_on_card(io, gradient),
        }
    }
}

impl Gru {
    fn stepwise_sizes(&self, machine: &Machine) -> Vec<usize> {
        let (value, rows, size) = (
            machine.precision.number().bytes(),
            self.steps * self.batch,
            self.stack.hidden,
        );
        let (sequence, stride) = (rows * size * value, self.stride(0));
        let mut sizes = vec![
            rows * stride * value,
            self.batch * 3 * size * value,
            sequence,
            3 * sequence,
            3 * size * stride.max(size) * 4,
            self.gate_columns().bytes(1),
            self.batch * 3 * size * value,
            rows * stride * value,
            self.batch * size * value,
            self.batch * size * 4,
        ];
        for layer in 0..self.stack.layers {
            let dropped = if self.drops(layer) { sequence } else { 0 };
            let weight = 3 * size * self.stride(layer) * value;
            sizes.extend([3 * sequence, sequence, sequence, dropped, weight]);
        }
        sizes
    }

    fn forward_as_chosen(&self, io: &Io) -> Result<(), CudaError> {
        if let Some(persistent) = self.persistent(io.machine) {
            return self.persistent_forward(io, &persistent);
        }
        self.join_on_card(io, io.scratch(Place::JOINED), self.stride(0))?;
        for layer in 0..self.stack.layers {
            self.project_on_card(io, layer)?;
            for step in 0..self.steps {
                self.step_on_card(io, layer, step)?;
            }
            if self.drops(layer) && io.training {
                let (source, target) = (
                    io.scratch(Place::hidden(layer)),
                    io.scratch(Place::dropped(layer)),
                );
                self.dropout_on_card(
                    io,
                    layer,
                    (source, target),
                    0..self.steps * self.batch,
                    self.stack.hidden,
                )?;
            }
        }
        let size = self.stack.hidden;
        let (step, rows) = match self.stack.output {
            SequenceOutput::Last => (self.steps - 1, self.batch),
            SequenceOutput::All => (0, self.steps * self.batch),
        };
        let source = self.at(io, Place::hidden(self.stack.layers - 1), step, size);
        copy_columns(io, rows, size, (source, size, 0), (io.output(0), size, 0), false)
    }

    /// Values from row to row of a layer's input: a multiple of 16 bytes for the first, which the products want.
    fn stride(&self, layer: usize) -> usize {
        if layer == 0 {
            (self.inputs + self.constants).next_multiple_of(8)
        } else {
            self.stack.hidden
        }
    }

    /// Address of a time step in a sequence of rows of `width` values.
    fn at(&self, io: &Io, block: usize, step: usize, width: usize) -> u64 {
        io.scratch(block) + (step * self.batch * width * io.number().bytes()) as u64
    }

    /// Address of what feeds a layer.
    fn layer_input(&self, io: &Io, layer: usize) -> u64 {
        match layer {
            0 => io.scratch(Place::JOINED),
            _ if self.drops(layer - 1) && io.training => io.scratch(Place::dropped(layer - 1)),
            _ => io.scratch(Place::hidden(layer - 1)),
        }
    }

    /// Gates of all time steps = input · W_ihᵀ + b_ih.
    fn project_on_card(&self, io: &Io, layer: usize) -> Result<(), CudaError> {
        let (rows, columns, stride) = (self.steps * self.batch, self.gate_width(), self.stride(layer));
        let arguments = [
            Argument::Address(io.master(4 * layer)),
            Argument::Address(io.scratch(Place::weight(layer))),
            Argument::Word(columns as i32),
            Argument::Word(self.widths(layer).0 as i32),
            Argument::Word(stride as i32),
        ];
        io.machine.each("gru_weight", columns * stride, &arguments)?;
        let input = io.matrix(self.layer_input(io, layer), rows, stride);
        let weight = io
            .matrix(io.scratch(Place::weight(layer)), columns, stride)
            .transposed();
        let gates = io.matrix(io.scratch(Place::gates(layer)), rows, columns);
        io.machine
            .multiply_with_bias(input, weight, gates, io.parameter(4 * layer + 2), false)
    }

    fn step_on_card(&self, io: &Io, layer: usize, step: usize) -> Result<(), CudaError> {
        let (size, columns) = (self.stack.hidden, self.gate_width());
        let before = match step {
            0 => 0,
            _ => self.at(io, Place::hidden(layer), step - 1, size),
        };
        if step > 0 {
            let weight = io.matrix(io.parameter(4 * layer + 1), columns, size).transposed();
            let products = io.matrix(io.scratch(Place::PRODUCTS), self.batch, columns);
            let bias = io.parameter(4 * layer + 3);
            io.machine.multiply_with_bias(
                io.matrix(before, self.batch, size),
                weight,
                products,
                bias,
                false,
            )?;
        }
        let arguments = [
            Argument::Address(self.at(io, Place::gates(layer), step, columns)),
            Argument::Address(io.scratch(Place::PRODUCTS)),
            Argument::Address(io.master(4 * layer + 3)),
            Argument::Address(before),
            Argument::Address(self.at(io, Place::inner(layer), step, size)),
            Argument::Address(self.at(io, Place::hidden(layer), step, size)),
            Argument::Long(self.batch as i64),
            Argument::Word(size as i32),
        ];
        io.machine.each("gru_cell", self.batch * size, &arguments)
    }
}
