//! Backward through time: every worker runs its own rows of the batch back through the recurrence, turning activated gates
//! into gradients in place; the weight gradients of all time steps are then one product each.

use super::cell;
use super::{Lstm, SequenceOutput};
use crate::cpu::dropout::drop_in_place;
use crate::cpu::gemm::{Matrix, Product};
use crate::cpu::io::Io;
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;
use std::ops::Range;

impl Lstm {
    pub(super) fn backward_layers<T: Real>(&self, io: &Io<T>) {
        let Some(gradient) = io.output_gradient(0) else { return };
        for layer in (0..self.stack.layers).rev() {
            if layer + 1 == self.stack.layers {
                self.recur_back(io, layer, &gradient, self.stack.output);
            } else {
                let sequence = io.scratch_result(self.layout().d_sequence());
                self.recur_back(io, layer, &sequence, SequenceOutput::All);
            }
            self.weight_gradients(io, layer);
            self.input_gradients(io, layer);
        }
    }

    /// `upstream` is the gradient of this layer's hidden states: of all steps, or of the last.
    fn recur_back<T: Real>(&self, io: &Io<T>, layer: usize, upstream: &[T], which: SequenceOutput) {
        let (size, batch, layout) = (self.stack.hidden, self.batch, self.layout());
        let (gemm, pool) = (io.gemm(), io.pool());
        let mut packed = io.scratch(layout.packed());
        let weight = io.parameter(4 * layer + 1);
        gemm.pack_right(pool, &Matrix::new(&weight, 4 * size, size), &mut packed);
        let packed: &[T] = &packed;
        let (cells, zeros) = (io.scratch_result(layout.cells(layer)), io.scratch_result(layout.zeros()));
        let (cells, zeros): (&[T], &[T]) = (&cells, &zeros);
        let (mut gates, mut sums) = (io.scratch(layout.gates(layer)), io.scratch(layout.offset()));
        let (mut d_hidden, mut d_cell) = (io.scratch(layout.d_hidden()), io.scratch(layout.d_cell()));
        let mut left = io.scratch(layout.left());
        let left_size = self.left_size(gemm, pool.workers());
        let (gates, sums, left) = (Parts::new(&mut gates), Parts::new(&mut sums), Parts::new(&mut left));
        let (d_hidden, d_cell) = (Parts::new(&mut d_hidden), Parts::new(&mut d_cell));
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.grain(gemm, pool.workers()));
            let scaled = |width: usize| rows.start * width..rows.end * width;
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let (left, sums) = unsafe {
                (
                    left.part(worker * left_size..(worker + 1) * left_size),
                    sums.part(scaled(4 * size)),
                )
            };
            // SAFETY: as above.
            let (d_hidden, d_cell) = unsafe { (d_hidden.part(scaled(size)), d_cell.part(scaled(size))) };
            sums.fill(T::ZERO);
            d_cell.fill(T::ZERO);
            d_hidden.fill(T::ZERO);
            for step in (0..self.steps).rev() {
                let place = |step: usize, width: usize| at(step * batch, &rows, width);
                match which {
                    SequenceOutput::All => add(d_hidden, &upstream[place(step, size)]),
                    SequenceOutput::Last if step + 1 == self.steps => add(d_hidden, &upstream[place(0, size)]),
                    SequenceOutput::Last => {}
                }
                // SAFETY: as above.
                let mine = unsafe { gates.part(place(step, 4 * size)) };
                for row in 0..rows.len() {
                    let (unit, four) = (row * size..(row + 1) * size, row * 4 * size..(row + 1) * 4 * size);
                    let previous = match step {
                        0 => zeros,
                        _ => &cells[place(step - 1, size)][unit.clone()],
                    };
                    let cell = &cells[place(step, size)][unit.clone()];
                    let (d_hidden, d_cell) = (&d_hidden[unit.clone()], &mut d_cell[unit]);
                    cell::backward(&mut mine[four.clone()], cell, previous, d_hidden, d_cell, &mut sums[four]);
                }
                if step > 0 {
                    let mine = Matrix::new(mine, rows.len(), 4 * size);
                    gemm.multiply_packed(mine, packed, d_hidden, (size, size), false, left);
                }
            }
        });
    }

    fn weight_gradients<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.stack.hidden, self.batch, self.layout());
        let (width, changing) = self.widths(layer);
        let gates = io.scratch_result(layout.gates(layer));
        let multiply = |gates: &[T], rows: usize, input: Matrix<T>, target: &mut [T], stride: usize| {
            let product = Product {
                a: Matrix::new(gates, rows, 4 * size).transposed(),
                b: input,
                c: Parts::new(target),
                stride,
                accumulate: true,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        };
        self.with_input(io, layer, |input| {
            debug_assert_eq!(input.columns, changing);
            let mut target = io.parameter_gradient(4 * layer);
            multiply(&gates, self.steps * batch, input, &mut target, width);
        });
        let later = (self.steps - 1) * batch;
        let hidden = io.scratch_result(layout.hidden(layer));
        let mut target = io.parameter_gradient(4 * layer + 1);
        let before = Matrix::new(&hidden, later, size);
        multiply(&gates[batch * 4 * size..], later, before, &mut target, size);
        let sums = io.scratch_result(layout.offset());
        if layer == 0 && self.constants > 0 {
            let (constant, mut target) = (io.input(1), io.parameter_gradient(0));
            let constant = Matrix::new(&constant, batch, self.constants);
            multiply(&sums, batch, constant, &mut target[self.inputs..], width);
        }
        for bias in [2, 3] {
            add_columns(io.pool(), &sums, batch, 4 * size, &mut io.parameter_gradient(4 * layer + bias));
        }
    }

    fn input_gradients<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, layout) = (self.stack.hidden, self.layout());
        let (width, changing) = self.widths(layer);
        let weight = io.parameter(4 * layer);
        let multiply = |gates: &[T], rows: usize, columns: Range<usize>, target: &mut [T], accumulate: bool| {
            let product = Product {
                a: Matrix::new(gates, rows, 4 * size),
                b: Matrix::strided(&weight[columns.start..], 4 * size, columns.len(), width),
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
            multiply(&gates, rows, 0..size, &mut target, false);
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

/// The values of some rows of the batch that begins at row `first`.
fn at(first: usize, rows: &Range<usize>, width: usize) -> Range<usize> {
    (first + rows.start) * width..(first + rows.end) * width
}

fn add<T: Real>(target: &mut [T], source: &[T]) {
    target.iter_mut().zip(source).for_each(|(sum, &value)| *sum += value);
}
