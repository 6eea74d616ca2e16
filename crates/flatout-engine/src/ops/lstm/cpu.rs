//! Each layer: one product projects the inputs of all time steps; then every worker runs its own rows of the batch through
//! time against the packed recurrent weight, without waiting for anybody.

use super::Lstm;
use super::cell;
use crate::EngineError;
use crate::cpu::gemm::{GemmSpace, Matrix};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;
use crate::ops::recurrent::cpu::at;

impl<T: Real> CpuOperation<T> for Lstm {
    fn scratch(&self, gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
        let hidden = self.layers.stack.hidden;
        let packed = gemm
            .packed_size(hidden, 4 * hidden)
            .max(gemm.packed_size(4 * hidden, hidden));
        self.layers.scratch_sizes(gemm, workers, packed)
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        for layer in 0..self.layers.stack.layers {
            self.layers.project(io, layer);
            self.layers.offsets(io, layer, self.layers.gate_width());
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

impl Lstm {
    fn recur<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.layers.stack.hidden, self.layers.batch, self.layers.layout());
        let (gemm, pool) = (io.gemm(), io.pool());
        let mut packed = io.scratch(layout.packed());
        let weight = io.parameter(4 * layer + 1);
        gemm.pack_right(
            pool,
            &Matrix::new(&weight, 4 * size, size).transposed(),
            &mut packed,
        );
        let packed: &[T] = &packed;
        let (offset, zeros) = (
            io.scratch_result(layout.offset()),
            io.scratch_result(layout.zeros()),
        );
        let (offset, zeros): (&[T], &[T]) = (&offset, &zeros);
        let (mut gates, mut cells) = (io.scratch(layout.gates(layer)), io.scratch(layout.inner(layer)));
        let (mut hidden, mut left) = (io.scratch(layout.hidden(layer)), io.scratch(layout.left()));
        let left_size = self.layers.left_size(gemm, pool.workers());
        let (gates, cells) = (Parts::new(&mut gates), Parts::new(&mut cells));
        let (hidden, left) = (Parts::new(&mut hidden), Parts::new(&mut left));
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.layers.grain(gemm, pool.workers()));
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let left = unsafe { left.part(worker * left_size..(worker + 1) * left_size) };
            for step in 0..self.layers.steps {
                let place = |step: usize, width: usize| at(step * batch, &rows, width);
                // SAFETY: as above.
                let mine = unsafe { gates.part(place(step, 4 * size)) };
                // SAFETY: as above.
                let (cell_now, hidden_now) =
                    unsafe { (cells.part(place(step, size)), hidden.part(place(step, size))) };
                if step > 0 {
                    // SAFETY: as above; the previous step is only read.
                    let before = unsafe { hidden.part(place(step - 1, size)) };
                    let before = Matrix::new(before, rows.len(), size);
                    gemm.multiply_packed(before, packed, mine, (4 * size, 4 * size), true, left);
                }
                for row in 0..rows.len() {
                    let unit = row * size..(row + 1) * size;
                    let gate = &mut mine[row * 4 * size..(row + 1) * 4 * size];
                    let offset = &offset[(rows.start + row) * 4 * size..][..4 * size];
                    let previous = match step {
                        0 => zeros,
                        // SAFETY: the previous step of this worker's rows, only read.
                        _ => unsafe { &cells.part(place(step - 1, size))[unit.clone()] },
                    };
                    cell::forward(
                        gate,
                        offset,
                        previous,
                        &mut cell_now[unit.clone()],
                        &mut hidden_now[unit],
                    );
                }
            }
        });
    }
}
