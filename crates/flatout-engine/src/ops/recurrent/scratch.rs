//! The memory a recurrent stack keeps from forward to backward, and where each kind begins.

use super::Layers;
use crate::cpu::gemm::GemmSpace;
use crate::cpu::real::Real;

/// Positions in the node's scratch.
#[derive(Clone, Copy)]
pub struct Layout {
    layers: usize,
}

impl Layout {
    /// `[steps, batch, gates · hidden]`: products, then activated gates, then their gradients.
    pub fn gates(&self, layer: usize) -> usize {
        layer
    }
    /// `[steps, batch, hidden]`: an LSTM's cells, a GRU's hidden share of the new gate.
    pub fn inner(&self, layer: usize) -> usize {
        self.layers + layer
    }
    /// `[steps, batch, hidden]`: the states.
    pub fn hidden(&self, layer: usize) -> usize {
        2 * self.layers + layer
    }
    /// What the layer above sees of this layer: with dropout a copy, else the states themselves.
    pub fn dropped(&self, layer: usize) -> usize {
        3 * self.layers + layer
    }
    /// `[batch, gates · hidden]`: bias and constant input in forward, the gradients summed over time in backward.
    pub fn offset(&self) -> usize {
        4 * self.layers
    }
    /// The packed recurrent weight.
    pub fn packed(&self) -> usize {
        4 * self.layers + 1
    }
    /// Each worker's packed rows.
    pub fn left(&self) -> usize {
        4 * self.layers + 2
    }
    /// `[steps, batch, hidden]`: the gradient of the states of all time steps.
    pub fn d_sequence(&self) -> usize {
        4 * self.layers + 3
    }
    /// `[batch, hidden]`: the gradient of the state, carried from step to step.
    pub fn d_hidden(&self) -> usize {
        4 * self.layers + 4
    }
    /// `[batch, hidden]`: an LSTM's gradient of the cell; a GRU's summed gradient of the hidden share.
    pub fn d_inner(&self) -> usize {
        4 * self.layers + 5
    }
    /// `[hidden]`: the state before the first step. Never written.
    pub fn zeros(&self) -> usize {
        4 * self.layers + 6
    }
    /// `[batch, gates · hidden]`: a GRU's recurrent products of one step.
    pub fn products(&self) -> usize {
        4 * self.layers + 7
    }
}

impl Layers {
    pub fn layout(&self) -> Layout {
        Layout {
            layers: self.stack.layers,
        }
    }

    /// Sizes in the order of [`Layout`].
    pub fn scratch_sizes<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize, packed: usize) -> Vec<usize> {
        let (hidden, layers) = (self.stack.hidden, self.stack.layers);
        let sequence = self.steps * self.batch * hidden;
        let mut sizes = vec![self.gates * sequence; layers];
        sizes.extend(vec![sequence; 2 * layers]);
        let dropped = |layer| if self.drops(layer) { sequence } else { 0 };
        sizes.extend((0..layers).map(dropped));
        sizes.push(self.batch * self.gate_width());
        sizes.push(packed);
        sizes.push(workers * self.left_size(gemm, workers));
        sizes.push(if layers > 1 { sequence } else { 0 });
        sizes.extend([self.batch * hidden; 2]);
        sizes.push(hidden);
        sizes.push(if self.gates == 3 {
            self.batch * self.gate_width()
        } else {
            0
        });
        sizes
    }

    pub fn drops(&self, layer: usize) -> bool {
        self.stack.dropout > 0.0 && layer + 1 < self.stack.layers
    }

    /// Scratch in which one worker packs its rows for the recurrent product.
    pub fn left_size<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> usize {
        let rows = self.batch.div_ceil(workers) + self.grain(gemm, workers);
        gemm.left_scratch(rows)
    }

    /// The batch is divided in multiples of the kernel's rows when it is large enough for that not to matter.
    pub fn grain<T: Real>(&self, gemm: &GemmSpace<T>, workers: usize) -> usize {
        let rows = gemm.kernel().rows;
        if self.batch >= 8 * rows * workers { rows } else { 1 }
    }
}
