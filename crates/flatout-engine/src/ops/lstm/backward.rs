//! Backward through time: every worker runs its own rows of the batch back through the recurrence, turning activated gates
//! into gradients in place; the weight gradients of all time steps are then one product each.

use super::Lstm;
use super::cell;
use crate::cpu::gemm::Matrix;
use crate::cpu::io::Io;
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;
use crate::ops::recurrent::SequenceOutput;
use crate::ops::recurrent::cpu::{add, add_weight_gradient, at};

impl Lstm {
    /// `upstream` is the gradient of this layer's hidden states: of all steps, or of the last.
    pub(super) fn recur_back<T: Real>(
        &self,
        io: &Io<T>,
        layer: usize,
        upstream: &[T],
        which: SequenceOutput,
    ) {
        let (size, batch, steps) = (self.layers.stack.hidden, self.layers.batch, self.layers.steps);
        let layout = self.layers.layout();
        let (gemm, pool) = (io.gemm(), io.pool());
        let mut packed = io.scratch(layout.packed());
        let weight = io.parameter(4 * layer + 1);
        gemm.pack_right(pool, &Matrix::new(&weight, 4 * size, size), &mut packed);
        let packed: &[T] = &packed;
        let (cells, zeros) = (
            io.scratch_result(layout.inner(layer)),
            io.scratch_result(layout.zeros()),
        );
        let (cells, zeros): (&[T], &[T]) = (&cells, &zeros);
        let (mut gates, mut sums) = (io.scratch(layout.gates(layer)), io.scratch(layout.offset()));
        let (mut d_hidden, mut d_cell) = (io.scratch(layout.d_hidden()), io.scratch(layout.d_inner()));
        let mut left = io.scratch(layout.left());
        let left_size = self.layers.left_size(gemm, pool.workers());
        let (gates, sums, left) = (
            Parts::new(&mut gates),
            Parts::new(&mut sums),
            Parts::new(&mut left),
        );
        let (d_hidden, d_cell) = (Parts::new(&mut d_hidden), Parts::new(&mut d_cell));
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.layers.grain(gemm, pool.workers()));
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let left = unsafe { left.part(worker * left_size..(worker + 1) * left_size) };
            // SAFETY: as above.
            let sums = unsafe { sums.part(at(0, &rows, 4 * size)) };
            // SAFETY: as above.
            let d_hidden = unsafe { d_hidden.part(at(0, &rows, size)) };
            // SAFETY: as above.
            let d_cell = unsafe { d_cell.part(at(0, &rows, size)) };
            sums.fill(T::ZERO);
            d_cell.fill(T::ZERO);
            d_hidden.fill(T::ZERO);
            for step in (0..steps).rev() {
                let place = |step: usize, width: usize| at(step * batch, &rows, width);
                match which {
                    SequenceOutput::All => add(d_hidden, &upstream[place(step, size)]),
                    SequenceOutput::Last if step + 1 == steps => add(d_hidden, &upstream[place(0, size)]),
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
                    cell::backward(
                        &mut mine[four.clone()],
                        cell,
                        previous,
                        d_hidden,
                        d_cell,
                        &mut sums[four],
                    );
                }
                if step > 0 {
                    let mine = Matrix::new(mine, rows.len(), 4 * size);
                    gemm.multiply_packed(mine, packed, d_hidden, (size, size), false, left);
                }
            }
        });
    }

    pub(super) fn weight_gradients<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.layers.stack.hidden, self.layers.batch, self.layers.layout());
        self.layers.input_weight_gradient(io, layer);
        let later = (self.layers.steps - 1) * batch;
        {
            let (gates, hidden) = (
                io.scratch_result(layout.gates(layer)),
                io.scratch_result(layout.hidden(layer)),
            );
            let gates = Matrix::new(&gates[batch * 4 * size..], later, 4 * size);
            let before = Matrix::new(&hidden, later, size);
            add_weight_gradient(io, gates, before, &mut io.parameter_gradient(4 * layer + 1), size);
        }
        let sums = io.scratch_result(layout.offset());
        for bias in [2, 3] {
            let mut target = io.parameter_gradient(4 * layer + bias);
            add_columns(io.pool(), &sums, batch, 4 * size, &mut target);
        }
    }
}
