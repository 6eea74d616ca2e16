//! Each layer: one product projects the inputs of all time steps; then every worker runs its own rows of the batch through
//! time against the packed recurrent weight, without waiting for anybody.

use super::cell;
use super::{Lstm, SequenceOutput};
use crate::EngineError;
use crate::cpu::dropout::drop_into;
use crate::cpu::gemm::{GemmSpace, Matrix, Product};
use crate::cpu::io::{CpuOperation, Io};
use crate::cpu::pool::Parts;
use crate::cpu::real::Real;

/// Where each kind of scratch begins.
pub(super) struct Layout {
    layers: usize,
}

impl Layout {
    pub fn gates(&self, layer: usize) -> usize {
        layer
    }
    pub fn cells(&self, layer: usize) -> usize {
        self.layers + layer
    }
    pub fn hidden(&self, layer: usize) -> usize {
        2 * self.layers + layer
    }
    /// What the layer above sees of this layer: with dropout a copy, else the hidden states themselves.
    pub fn dropped(&self, layer: usize) -> usize {
        3 * self.layers + layer
    }
    /// `[batch, 4 hidden]`: bias and constant input in forward, the gradients summed over time in backward.
    pub fn offset(&self) -> usize {
        4 * self.layers
    }
    pub fn packed(&self) -> usize {
        4 * self.layers + 1
    }
    pub fn left(&self) -> usize {
        4 * self.layers + 2
    }
    /// The gradient of the hidden states of all time steps.
    pub fn d_sequence(&self) -> usize {
        4 * self.layers + 3
    }
    pub fn d_hidden(&self) -> usize {
        4 * self.layers + 4
    }
    pub fn d_cell(&self) -> usize {
        4 * self.layers + 5
    }
    /// The state before the first step. Never written.
    pub fn zeros(&self) -> usize {
        4 * self.layers + 6
    }
}

impl<T: Real> CpuOperation<T> for Lstm {
    fn scratch(&self, gemm: &GemmSpace<T>, workers: usize) -> Vec<usize> {
        let (hidden, layers) = (self.stack.hidden, self.stack.layers);
        let sequence = self.steps * self.batch * hidden;
        let mut sizes = vec![4 * sequence; layers];
        sizes.extend(vec![sequence; 2 * layers]);
        let dropped = |layer| if self.drops(layer) { sequence } else { 0 };
        sizes.extend((0..layers).map(dropped));
        sizes.push(self.batch * 4 * hidden);
        sizes.push(gemm.packed_size(hidden, 4 * hidden).max(gemm.packed_size(4 * hidden, hidden)));
        sizes.push(workers * self.left_size(gemm, workers));
        sizes.push(if layers > 1 { sequence } else { 0 });
        sizes.extend([self.batch * hidden; 2]);
        sizes.push(hidden);
        sizes
    }

    fn forward(&self, io: &Io<T>) -> Result<(), EngineError> {
        for layer in 0..self.stack.layers {
            self.project(io, layer);
            self.offsets(io, layer);
            self.recur(io, layer);
            if self.drops(layer) {
                let (source, mut target) = (io.scratch_result(self.layout().hidden(layer)), io.scratch(self.layout().dropped(layer)));
                drop_into(io, layer as u64, self.stack.dropout, &source, &mut target, false);
            }
        }
        let hidden = io.scratch_result(self.layout().hidden(self.stack.layers - 1));
        let mut output = io.output(0);
        let first = match self.stack.output {
            SequenceOutput::Last => hidden.len() - output.len(),
            SequenceOutput::All => 0,
        };
        output.copy_from_slice(&hidden[first..]);
        Ok(())
    }

    fn backward(&self, io: &Io<T>) {
        self.backward_layers(io);
    }
}

impl Lstm {
    pub(super) fn layout(&self) -> Layout {
        Layout {
            layers: self.stack.layers,
        }
    }

    pub(super) fn drops(&self, layer: usize) -> bool {
        self.stack.dropout > 0.0 && layer + 1 < self.stack.layers
    }

    /// Scratch in which one worker packs its rows for the recurrent product.
    pub(super) fn left_size<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> usize {
        let rows = self.batch.div_ceil(workers) + self.grain(gemm, workers);
        gemm.left_scratch(rows, 4 * self.stack.hidden)
    }

    /// The batch is divided in multiples of the kernel's rows when it is large enough for that not to matter.
    pub(super) fn grain<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> usize {
        let rows = gemm.kernel().rows;
        if self.batch >= 8 * rows * workers { rows } else { 1 }
    }

    /// Calls `use_input` with what feeds a layer: `[steps · batch, width]`.
    pub(super) fn with_input<T: Real>(&self, io: &Io<T>, layer: usize, use_input: impl FnOnce(Matrix<T>)) {
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
    pub(super) fn widths(&self, layer: usize) -> (usize, usize) {
        if layer == 0 {
            (self.inputs + self.constants, self.inputs)
        } else {
            (self.stack.hidden, self.stack.hidden)
        }
    }

    /// Gates of all time steps = input · W_ihᵀ.
    fn project<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (width, changing) = self.widths(layer);
        let weight = io.parameter(4 * layer);
        let mut gates = io.scratch(self.layout().gates(layer));
        self.with_input(io, layer, |input| {
            let product = Product {
                a: input,
                b: Matrix::strided(&weight, 4 * self.stack.hidden, changing, width).transposed(),
                c: Parts::new(&mut gates),
                stride: 4 * self.stack.hidden,
                accumulate: false,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        });
    }

    /// What is added to the gates at every time step: both biases, and the constant input's share.
    fn offsets<T: Real>(&self, io: &Io<T>, layer: usize) {
        let columns = 4 * self.stack.hidden;
        let (one, two) = (io.parameter(4 * layer + 2), io.parameter(4 * layer + 3));
        let mut offset = io.scratch(self.layout().offset());
        for row in offset.chunks_exact_mut(columns) {
            for (value, (&one, &two)) in row.iter_mut().zip(one.iter().zip(&*two)) {
                *value = one + two;
            }
        }
        if layer == 0 && self.constants > 0 {
            let (weight, constant) = (io.parameter(0), io.input(1));
            let width = self.inputs + self.constants;
            let product = Product {
                a: Matrix::new(&constant, self.batch, self.constants),
                b: Matrix::strided(&weight[self.inputs..], columns, self.constants, width).transposed(),
                c: Parts::new(&mut offset),
                stride: columns,
                accumulate: true,
                epilogue: None,
            };
            io.gemm().multiply(io.pool(), &product);
        }
    }

    fn recur<T: Real>(&self, io: &Io<T>, layer: usize) {
        let (size, batch, layout) = (self.stack.hidden, self.batch, self.layout());
        let (gemm, pool) = (io.gemm(), io.pool());
        let mut packed = io.scratch(layout.packed());
        let weight = io.parameter(4 * layer + 1);
        gemm.pack_right(pool, &Matrix::new(&weight, 4 * size, size).transposed(), &mut packed);
        let packed: &[T] = &packed;
        let (offset, zeros) = (io.scratch_result(layout.offset()), io.scratch_result(layout.zeros()));
        let (offset, zeros): (&[T], &[T]) = (&offset, &zeros);
        let (mut gates, mut cells) = (io.scratch(layout.gates(layer)), io.scratch(layout.cells(layer)));
        let (mut hidden, mut left) = (io.scratch(layout.hidden(layer)), io.scratch(layout.left()));
        let left_size = self.left_size(gemm, pool.workers());
        let (gates, cells, hidden, left) = (
            Parts::new(&mut gates),
            Parts::new(&mut cells),
            Parts::new(&mut hidden),
            Parts::new(&mut left),
        );
        pool.run(&|worker| {
            let rows = pool.share(worker, batch, self.grain(gemm, pool.workers()));
            if rows.is_empty() {
                return;
            }
            // SAFETY: every part below is of this worker's rows of the batch, or its own scratch.
            let left = unsafe { left.part(worker * left_size..(worker + 1) * left_size) };
            for step in 0..self.steps {
                let place = |step: usize, width: usize| {
                    (step * batch + rows.start) * width..(step * batch + rows.end) * width
                };
                // SAFETY: as above.
                let mine = unsafe { gates.part(place(step, 4 * size)) };
                // SAFETY: as above.
                let (cell_now, hidden_now) = unsafe { (cells.part(place(step, size)), hidden.part(place(step, size))) };
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
                    cell::forward(gate, offset, previous, &mut cell_now[unit.clone()], &mut hidden_now[unit]);
                }
            }
        });
    }
}
