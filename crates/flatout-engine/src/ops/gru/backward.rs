//! Backward through time. The gradients of the recurrent products differ from those of the inputs' in the new gate alone, so
//! that share is kept apart and every product over the gates comes in two parts.

use super::Gru;
use super::cell;
use crate::cpu::gemm::Matrix;
use crate::cpu::io::Io;
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::cpu::sums::add_columns;
use crate::ops::recurrent::SequenceOutput;
use crate::ops::recurrent::cpu::{add, add_weight_gradient, at};

impl Gru {
    /// `upstream` is the gradient of this layer's states: of all steps, or of the last.
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
        let (first, second) = packed.split_at_mut(gemm.packed_size(2 * size, size));
        gemm.pack_right(pool, &Matrix::new(&weight, 2 * size, size), first);
        gemm.pack_right(pool, &Matrix::new(&weight[2 * size * size..], size, size), second);
        let (first, second): (&[T], &[T]) = (first, second);
        let (hidden, zeros) = (
            io.scratch_result(layout.hidden(layer)),
            io.scratch_result(layout.zeros()),
        );
        let (hidden, zeros): (&[T], &[T]) = (&hidden, &zeros);
        let (mut gates, mut sums) = (io.scratch(layout.gates(layer)), io.scratch(layout.offset()));
        let (mut inner, mut inner_sums) = (io.scratch(layout.inner(layer)), io.scratch(layout.d_inner()));
        let (mut d_hidden, mut left) = (io.scratch(layout.d_hidden()), io.scratch(layout.left()));
        let left_size = self.layers.left_size(gemm, pool.workers());
        let (gates, sums, left) = (
            Parts::new(&mut gates),
            Parts::new(&mut sums),
            Parts::new(&mut left),
        );
        let (inner, inner_sums) = (Parts::new(&mut inner), Parts::new(&mut inner_sums));
        let d_hidden = Parts::new(&mut d_hidden);
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.layers.grain(gemm, pool.workers()));
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let left = unsafe { left.part(worker * left_size..(worker + 1) * left_size) };
            // SAFETY: as above.
            let sums = unsafe { sums.part(at(0, &rows, 3 * size)) };
            // SAFETY: as above.
            let inner_sums = unsafe { inner_sums.part(at(0, &rows, size)) };
            // SAFETY: as above.
            let d_hidden = unsafe { d_hidden.part(at(0, &rows, size)) };
            sums.fill(T::ZERO);
            inner_sums.fill(T::ZERO);
            d_hidden.fill(T::ZERO);
            for step in (0..steps).rev() {
                let place = |step: usize, width: usize| at(step * batch, &rows, width);
                match which {
                    SequenceOutput::All => add(d_hidden, &upstream[place(step, size)]),
                    SequenceOutput::Last if step + 1 == steps => add(d_hidden, &upstream[place(0, size)]),
                    SequenceOutput::Last => {}
                }
                // SAFETY: as above.
                let (mine, inner) =
                    unsafe { (gates.part(place(step, 3 * size)), inner.part(place(step, size))) };
                for row in 0..rows.len() {
                    let (unit, three) = (row * size..(row + 1) * size, row * 3 * size..(row + 1) * 3 * size);
                    let previous = match step {
                        0 => zeros,
                        _ => &hidden[place(step - 1, size)][unit.clone()],
                    };
                    let (gate, sum) = (&mut mine[three.clone()], &mut sums[three]);
                    let (inner, d_hidden) = (&mut inner[unit.clone()], &mut d_hidden[unit.clone()]);
                    cell::backward(gate, inner, previous, d_hidden, sum, &mut inner_sums[unit]);
                }
                if step > 0 && !rows.is_empty() {
                    let both = Matrix::strided(mine, rows.len(), 2 * size, 3 * size);
                    gemm.multiply_packed(both, first, d_hidden, (size, size), true, left);
                    let inner = Matrix::new(inner, rows.len(), size);
                    gemm.multiply_packed(inner, second, d_hidden, (size, size), true, left);
                }
            }
        });
    }

    pub(super) fn weight_gradients<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.layers.stack.hidden, self.layers.batch, self.layers.layout());
        self.layers.input_weight_gradient(io, layer);
        let later = (self.layers.steps - 1) * batch;
        let (gates, inner) = (
            io.scratch_result(layout.gates(layer)),
            io.scratch_result(layout.inner(layer)),
        );
        let hidden = io.scratch_result(layout.hidden(layer));
        let mut target = io.parameter_gradient(4 * layer + 1);
        let (first, second) = target.split_at_mut(2 * size * size);
        let before = Matrix::new(&hidden, later, size);
        let both = Matrix::strided(&gates[batch * 3 * size..], later, 2 * size, 3 * size);
        add_weight_gradient(io, both, before, first, size);
        add_weight_gradient(
            io,
            Matrix::new(&inner[batch * size..], later, size),
            before,
            second,
            size,
        );
        let (sums, inner_sums) = (
            io.scratch_result(layout.offset()),
            io.scratch_result(layout.d_inner()),
        );
        let pool = io.pool();
        add_columns(
            pool,
            &sums,
            batch,
            3 * size,
            &mut io.parameter_gradient(4 * layer + 2),
        );
        let mut bias = io.parameter_gradient(4 * layer + 3);
        add_columns(pool, &sums, batch, 3 * size, &mut bias[..2 * size]);
        add_columns(pool, &inner_sums, batch, size, &mut bias[2 * size..]);
    }
}
