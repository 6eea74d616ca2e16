//! The recurrence one step at a time, for precisions, sizes and cards without the persistent kernel.

use super::super::Lstm;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError};
use crate::ops::recurrent::Layout;

impl Lstm {
    pub(super) fn step_by_step(&self, io: &Io, layer: usize) -> Result<(), CudaError> {
        let (size, batch, value) = (self.stack.hidden, self.batch, io.number().bytes());
        let at = |block: usize, step: usize, width: usize| {
            io.scratch(block) + (step * batch * width * value) as u64
        };
        for step in 0..self.steps {
            let gates = at(Layout::gates(layer), step, 4 * size);
            let before = step.saturating_sub(1);
            if step > 0 {
                let hidden = io.matrix(at(Layout::hidden(layer), before, size), batch, size);
                let weight = io
                    .matrix(io.parameter(4 * layer + 1), 4 * size, size)
                    .transposed();
                io.machine
                    .multiply(hidden, weight, io.matrix(gates, batch, 4 * size), true)?;
            }
            let arguments = [
                Argument::Address(gates),
                Argument::Address(at(Layout::cells(layer), before, size)),
                Argument::Address(at(Layout::cells(layer), step, size)),
                Argument::Address(at(Layout::hidden(layer), step, size)),
                Argument::Long(batch as i64),
                Argument::Word(size as i32),
                Argument::Word(i32::from(step == 0)),
            ];
            io.machine.each("lstm_cell", batch * size, &arguments)?;
        }
        Ok(())
    }

    pub(super) fn step_by_step_back(
        &self,
        io: &Io,
        layer: usize,
        upstream: u64,
        last_only: bool,
    ) -> Result<(), CudaError> {
        let (size, batch, value, layout) = (
            self.stack.hidden,
            self.batch,
            io.number().bytes(),
            self.layout_on_card(),
        );
        let at = |block: usize, step: usize, width: usize| {
            io.scratch(block) + (step * batch * width * value) as u64
        };
        let d_hidden = io.scratch(layout.d_hidden());
        for step in (0..self.steps).rev() {
            let last = step + 1 == self.steps;
            let gates = at(Layout::gates(layer), step, 4 * size);
            let above = match last_only {
                true if last => upstream,
                true => 0,
                false => upstream + (step * batch * size * value) as u64,
            };
            let arguments = [
                Argument::Address(gates),
                Argument::Address(at(Layout::cells(layer), step.saturating_sub(1), size)),
                Argument::Address(at(Layout::cells(layer), step, size)),
                Argument::Address(if last { 0 } else { d_hidden }),
                Argument::Address(above),
                Argument::Address(io.scratch(layout.d_cell())),
                Argument::Long(batch as i64),
                Argument::Word(size as i32),
                Argument::Word(i32::from(step == 0)),
                Argument::Word(i32::from(last)),
            ];
            io.machine.each("lstm_cell_backward", batch * size, &arguments)?;
            if step > 0 {
                let weight = io.matrix(io.parameter(4 * layer + 1), 4 * size, size);
                let target = io.matrix(d_hidden, batch, size);
                io.machine
                    .multiply(io.matrix(gates, batch, 4 * size), weight, target, false)?;
            }
        }
        let arguments = [
            Argument::Address(io.scratch(Layout::gates(layer))),
            Argument::Address(io.scratch(Layout::bias_parts(layer))),
            Argument::Long((self.steps * batch) as i64),
            Argument::Word(4 * size as i32),
        ];
        self.gate_columns().launch(io.machine, "column_sums", &arguments)
    }
}
