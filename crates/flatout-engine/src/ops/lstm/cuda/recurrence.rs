//! The persistent recurrence: one launch a layer, see recurrence.cu.

use super::super::Lstm;
use super::Layout;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError, Machine};
use std::ops::Range;

/// A compiled variant of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persistent {
    /// Hidden units with padding: a multiple of what a block owns.
    pub hidden: usize,
    warps: usize,
    tiles: usize,
}

/// The kernel's text.
pub(crate) const RECURRENCE: &str = include_str!("../recurrence.cu");

/// Every variant that a model may ask for: its module and what it is compiled with.
pub(crate) fn variants() -> Vec<(String, Vec<String>)> {
    let all = [64, 128, 256].into_iter().filter_map(Persistent::of);
    all.map(|variant| (variant.module(), variant.defines())).collect()
}

/// Rows of a tile: what one matrix instruction takes.
const TILE: usize = 16;

impl Persistent {
    /// The variant for a width, if there is one. Measured on an H200 (2026-11-15, 256 units): 8 warps and 2 tiles is the
    /// fastest of eight variants at batches of 512 and 4,096.
    pub fn of(hidden: usize) -> Option<Self> {
        // At least two blocks a cluster: one alone may not write into itself as if it were another.
        let padded = hidden.next_power_of_two().max(64);
        let warps = if padded < 128 { 4 } else { 8 };
        // A block keeps its rows of the matrix in registers: more than 256 units do not fit.
        (padded <= 256).then_some(Self { hidden: padded, warps, tiles: 2 })
    }

    fn module(&self) -> String {
        format!("recurrence-{}-{}-{}", self.hidden, self.warps, self.tiles)
    }

    fn units(&self) -> usize {
        8 * self.warps
    }

    fn rows(&self) -> usize {
        TILE * self.tiles
    }

    fn cluster(&self) -> usize {
        self.hidden / self.units()
    }

    /// Groups of rows that a cluster carries through time.
    pub fn tiles(&self, batch: usize) -> usize {
        batch.div_ceil(self.rows())
    }

    pub fn cell_bytes(&self, steps: usize, batch: usize) -> usize {
        steps * self.tiles(batch) * self.rows() * self.hidden * 2
    }

    pub fn packed_bytes(&self) -> usize {
        2 * self.hidden * self.hidden * 4
    }

    fn forward_shared(&self) -> usize {
        2 * self.rows() * (self.hidden + 8) * 2 + 16 * self.tiles
    }

    fn backward_shared(&self) -> usize {
        let received = 2 * self.cluster() * self.rows() * (self.units() + 8);
        let own = 2 * TILE * (4 * self.units() + 8);
        (received + own) * 2 + 16 * self.tiles
    }

    fn defines(&self) -> Vec<String> {
        let sizes = [("HIDDEN", self.hidden), ("WARPS", self.warps), ("TILES", self.tiles)];
        sizes.map(|(name, value)| format!("{name}={value}")).into()
    }

    pub fn load(&self, machine: &Machine) -> Result<(), CudaError> {
        machine.load(&self.module(), RECURRENCE, &self.defines())?;
        machine.function(&self.module(), "lstm_forward")?.allow_shared(self.forward_shared())?;
        machine.function(&self.module(), "lstm_backward")?.allow_shared(self.backward_shared())
    }

    /// What one launch leaves to the next of a layer, going back.
    pub fn carry_bytes(&self, batch: usize) -> usize {
        self.tiles(batch) * self.tiles * self.cluster() * 32 * self.warps * 32
    }

    /// Blocks of a layer's launch.
    pub fn blocks(&self, batch: usize) -> usize {
        self.cluster() * self.tiles(batch)
    }

    /// The recurrent matrix in the order of the kernels' registers.
    pub fn pack(&self, lstm: &Lstm, io: &Io, layer: usize) -> Result<(), CudaError> {
        let pairs = 2 * self.hidden * self.hidden;
        let arguments = [
            Argument::Address(io.master(4 * layer + 1)),
            Argument::Address(io.scratch(Layout::packed_forward(layer))),
            Argument::Address(io.scratch(Layout::packed_backward(layer))),
            Argument::Word(lstm.stack.hidden as i32),
        ];
        self.launch(io, "lstm_pack", (pairs.div_ceil(256), 1), 256, 0, &arguments)
    }

    /// Addresses of gates, cells and states of a step.
    fn places(&self, lstm: &Lstm, io: &Io, layer: usize, step: usize) -> [Argument; 3] {
        let row = (step * lstm.batch * self.hidden * 2) as u64;
        let cells = self.cell_bytes(step, lstm.batch) as u64;
        [
            Argument::Address(io.scratch(Layout::gates(layer)) + 4 * row),
            Argument::Address(io.scratch(Layout::cells(layer)) + cells),
            Argument::Address(io.scratch(Layout::hidden(layer)) + row),
        ]
    }

    pub fn forward(&self, lstm: &Lstm, io: &Io, layer: usize, steps: &Range<usize>) -> Result<(), CudaError> {
        let [gates, cells, hidden] = self.places(lstm, io, layer, steps.start);
        let arguments = [
            Argument::Address(io.scratch(Layout::packed_forward(layer))),
            gates,
            cells,
            hidden,
            Argument::Word(steps.len() as i32),
            Argument::Word(lstm.batch as i32),
            Argument::Word(i32::from(steps.start > 0)),
        ];
        let grid = (self.cluster(), self.tiles(lstm.batch));
        self.launch(io, "lstm_forward", grid, 32 * self.warps, self.forward_shared(), &arguments)
    }

    /// `part` numbers the launches of a layer: each leaves sums of its own for the bias.
    pub fn backward(
        &self,
        lstm: &Lstm,
        io: &Io,
        layer: usize,
        (part, steps): (usize, &Range<usize>),
        upstream: u64,
        last_only: bool,
    ) -> Result<(), CudaError> {
        let [gates, cells, _] = self.places(lstm, io, layer, steps.start);
        let ends = steps.end == lstm.steps;
        let (given, upstream) = match last_only {
            true if ends => (1, upstream),
            true => (2, 0),
            false => (0, upstream + (steps.start * lstm.batch * self.hidden * 2) as u64),
        };
        let sums = (part * self.tiles(lstm.batch) * 4 * self.hidden * 4) as u64;
        let arguments = [
            Argument::Address(io.scratch(Layout::packed_backward(layer))),
            gates,
            cells,
            Argument::Address(upstream),
            Argument::Address(io.scratch(Layout::bias_parts(layer)) + sums),
            Argument::Address(io.scratch(Layout::carry(layer))),
            Argument::Word(steps.len() as i32),
            Argument::Word(lstm.batch as i32),
            Argument::Word(given),
            Argument::Word(i32::from(!ends)),
            Argument::Word(i32::from(steps.start > 0)),
        ];
        let grid = (self.cluster(), self.tiles(lstm.batch));
        self.launch(io, "lstm_backward", grid, 32 * self.warps, self.backward_shared(), &arguments)
    }

    fn launch(
        &self,
        io: &Io,
        kernel: &str,
        grid: (usize, usize),
        threads: usize,
        shared: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let function = io.machine.function(&self.module(), kernel)?;
        // SAFETY: the arguments are the kernel's, over blocks of the sizes that `scratch` asked for.
        unsafe { function.launch(io.machine.queue(), grid, threads, shared, arguments) }
    }
}
