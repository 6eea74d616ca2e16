//! As the LSTM: one product for the inputs of all time steps, then every worker takes its own rows through time. The
//! recurrent products stay apart from the inputs', since the reset gate acts on one share only.

use super::Gru;
use super::cell;
use crate::EngineError;
use crate::cpu::gemm::{GemmSpace, Matrix};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::ops::recurrent::cpu::at;

impl<T: Real> CpuOperation<T> for Gru {
    fn scratch(&self, gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
        let size = self.layers.stack.hidden;
        let backward = gemm.packed_size(2 * size, size) + gemm.packed_size(size, size);
        let packed = gemm.packed_size(size, 3 * size).max(backward);
        self.layers.scratch_sizes(gemm, workers, packed)
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        for layer in 0..self.layers.stack.layers {
            self.layers.project(io, layer);
            self.layers.offsets(io, layer, 2 * self.layers.stack.hidden);
            self.recur(io, layer);
            self.layers.drop_states(io, layer);
        }
        self.layers.write_output(io);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        for layer in (0..self.layers.stack.layers).rev() {
            self.layers.with_upstream(io, layer, |gradient, which| {
                self.recur_back(io, layer, gradient, which);
            });
            self.weight_gradients(io, layer);
            self.layers.input_gradients(io, layer);
        }
    }
}

impl Gru {
    fn recur<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.layers.stack.hidden, self.layers.batch, self.layers.layout());
        let (gemm, pool) = (io.gemm(), io.pool());
        let mut packed = io.scratch(layout.packed());
        let (weight, bias) = (io.parameter(4 * layer + 1), io.parameter(4 * layer + 3));
        gemm.pack_right(
            pool,
            &Matrix::new(&weight, 3 * size, size).transposed(),
            &mut packed,
        );
        let (packed, bias): (&[T], &[T]) = (&packed, &bias[2 * size..]);
        let (offset, zeros) = (
            io.scratch_result(layout.offset()),
            io.scratch_result(layout.zeros()),
        );
        let (offset, zeros): (&[T], &[T]) = (&offset, &zeros);
        let (mut gates, mut inner) = (io.scratch(layout.gates(layer)), io.scratch(layout.inner(layer)));
        let (mut hidden, mut left) = (io.scratch(layout.hidden(layer)), io.scratch(layout.left()));
        let mut products = io.scratch(layout.products());
        let left_size = self.layers.left_size(gemm, pool.workers());
        let (gates, inner) = (Parts::new(&mut gates), Parts::new(&mut inner));
        let (hidden, left, products) = (
            Parts::new(&mut hidden),
            Parts::new(&mut left),
            Parts::new(&mut products),
        );
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.layers.grain(gemm, pool.workers()));
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let left = unsafe { left.part(worker * left_size..(worker + 1) * left_size) };
            // SAFETY: as above.
            let products = unsafe { products.part(at(0, &rows, 3 * size)) };
            products.fill(T::ZERO);
            for step in 0..self.layers.steps {
                let place = |step: usize, width: usize| at(step * batch, &rows, width);
                // SAFETY: as above.
                let mine = unsafe { gates.part(place(step, 3 * size)) };
                // SAFETY: as above.
                let (inner_now, hidden_now) =
                    unsafe { (inner.part(place(step, size)), hidden.part(place(step, size))) };
                // SAFETY: as above; the previous step is only read.
                let before = (step > 0).then(|| unsafe { &*hidden.part(place(step - 1, size)) });
                if let Some(before) = before {
                    let before = Matrix::new(before, rows.len(), size);
                    gemm.multiply_packed(before, packed, products, (3 * size, 3 * size), false, left);
                }
                for row in 0..rows.len() {
                    let (unit, three) = (row * size..(row + 1) * size, row * 3 * size..(row + 1) * 3 * size);
                    let offset = &offset[(rows.start + row) * 3 * size..][..3 * size];
                    let previous = before.map_or(zeros, |before| &before[unit.clone()]);
                    let (inner, hidden) = (&mut inner_now[unit.clone()], &mut hidden_now[unit]);
                    let (gate, products) = (&mut mine[three.clone()], &products[three]);
                    cell::forward(gate, offset, products, bias, previous, inner, hidden);
                }
            }
        });
    }
}
