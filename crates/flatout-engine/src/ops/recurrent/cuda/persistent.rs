//! The persistent recurrence: one launch a layer, see recurrence.cu.

use super::layout::Layout;
use crate::cuda::io::Io;
use crate::cuda::{Argument, CudaError, Machine};
use crate::ops::recurrent::Layers;
use std::ops::Range;

/// A compiled variant of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Persistent {
    /// Hidden units with padding: a multiple of what a block owns.
    pub hidden: usize,
    warps: usize,
    tiles: usize,
    /// Three gates in place of four.
    is_gru: bool,
}

/// The kernel's text.
pub(crate) const RECURRENCE: &str = include_str!("../recurrence.cu");

/// The variants that tests compile: both ways of keeping the matrix in both kinds of stack and of number, and one of each width
/// between. What a model may ask for beside them differs in no more than the sizes.
pub(crate) fn variants() -> Vec<(String, Vec<String>)> {
    let wide = [(512, 4, 1), (512, 4, 2), (512, 3, 1), (512, 3, 2)];
    let narrow = [(64, 4, 1), (64, 3, 2), (256, 4, 1), (384, 4, 1)];
    let one = |(hidden, gates, real): (usize, usize, usize)| {
        let variant = Persistent::of(hidden, gates)?;
        let mut defines = variant.defines();
        defines.push(format!("REAL={real}"));
        Some((variant.module(), defines))
    };
    wide.into_iter().chain(narrow).filter_map(one).collect()
}

/// Rows of a tile: what one matrix instruction takes.
const TILE: usize = 16;

impl Persistent {
    /// The variant for a width, if there is one. Measured on an H200 (2026-11-15, 256 units): 8 warps and 2 tiles is the
    /// fastest of eight variants at batches of 512 and 4,096.
    pub fn of(hidden: usize, gates: usize) -> Option<Self> {
        // At least two blocks a cluster: one alone may not write into itself as if it were another. Above 256 units the matrix
        // no longer fits into registers and shared memory takes the rest; above 512 a cluster would need more than eight blocks.
        let padded = match hidden {
            0..=256 => hidden.next_power_of_two().max(64),
            _ => hidden.next_multiple_of(128),
        };
        let (warps, tiles, is_gru) = (if padded < 128 { 4 } else { 8 }, 2, gates == 3);
        (padded <= 512).then_some(Self {
            hidden: padded,
            warps,
            tiles,
            is_gru,
        })
    }

    fn module(&self) -> String {
        let kind = if self.is_gru { "gru" } else { "lstm" };
        format!("{kind}-{}-{}-{}", self.hidden, self.warps, self.tiles)
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

    /// Words of the matrix that a thread keeps in registers at most; the kernels count the same way.
    const HELD_WORDS: usize = 128;

    /// Bytes of the matrix in shared memory, of tiles that are so many words a thread.
    fn laid_bytes(&self, tiles: usize, words: usize) -> usize {
        let held = tiles.min(Self::HELD_WORDS / words);
        (tiles - held) * words * 4 * 32 * self.warps
    }

    fn forward_shared(&self) -> usize {
        let states = 2 * self.rows() * (self.hidden + 8) * 2;
        states + 16 * self.tiles + self.laid_bytes(self.hidden / 16, 8)
    }

    fn backward_shared(&self) -> usize {
        let received = 2 * self.cluster() * self.rows() * (self.units() + 8);
        let own = 2 * TILE * (4 * self.units() + 8);
        let words = 2 * (self.hidden / self.warps / 8);
        (received + own) * 2 + 16 * self.tiles + self.laid_bytes(self.units() / 4, words)
    }

    fn defines(&self) -> Vec<String> {
        let sizes = [
            ("HIDDEN", self.hidden),
            ("WARPS", self.warps),
            ("TILES", self.tiles),
            ("GRU", usize::from(self.is_gru)),
        ];
        sizes.map(|(name, value)| format!("{name}={value}")).into()
    }

    pub fn load(&self, machine: &Machine) -> Result<(), CudaError> {
        machine.load(&self.module(), RECURRENCE, &self.defines())?;
        machine
            .function(&self.module(), "recurrence_forward")?
            .allow_shared(self.forward_shared())?;
        machine
            .function(&self.module(), "recurrence_backward")?
            .allow_shared(self.backward_shared())
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
    pub fn pack(&self, layers: &Layers, io: &Io, layer: usize) -> Result<(), CudaError> {
        let pairs = 2 * self.hidden * self.hidden;
        let arguments = [
            Argument::Address(io.master(4 * layer + 1)),
            Argument::Address(io.scratch(Layout::packed_forward(layer))),
            Argument::Address(io.scratch(Layout::packed_backward(layer))),
            Argument::Word(layers.stack.hidden as i32),
        ];
        self.launch(
            io,
            "recurrence_pack",
            (pairs.div_ceil(256), 1),
            256,
            0,
            &arguments,
        )
    }

    /// Addresses of gates, cells and states of a step.
    fn places(&self, layers: &Layers, io: &Io, layer: usize, step: usize) -> [Argument; 3] {
        let row = (step * layers.batch * self.hidden * 2) as u64;
        let cells = self.cell_bytes(step, layers.batch) as u64;
        [
            Argument::Address(io.scratch(Layout::gates(layer)) + 4 * row),
            Argument::Address(io.scratch(Layout::cells(layer)) + cells),
            Argument::Address(io.scratch(Layout::hidden(layer)) + row),
        ]
    }

    pub fn forward(
        &self,
        layers: &Layers,
        io: &Io,
        layer: usize,
        steps: &Range<usize>,
    ) -> Result<(), CudaError> {
        let [gates, cells, hidden] = self.places(layers, io, layer, steps.start);
        let arguments = [
            Argument::Address(io.scratch(Layout::packed_forward(layer))),
            gates,
            cells,
            hidden,
            Argument::Word(steps.len() as i32),
            Argument::Word(layers.batch as i32),
            Argument::Word(i32::from(steps.start > 0)),
        ];
        let grid = (self.cluster(), self.tiles(layers.batch));
        self.launch(
            io,
            "recurrence_forward",
            grid,
            32 * self.warps,
            self.forward_shared(),
            &arguments,
        )
    }

    /// `part` numbers the launches of a layer: each leaves sums of its own for the bias.
    pub fn backward(
        &self,
        layers: &Layers,
        io: &Io,
        layer: usize,
        (part, steps): (usize, &Range<usize>),
        upstream: u64,
        last_only: bool,
    ) -> Result<(), CudaError> {
        let [gates, cells, _] = self.places(layers, io, layer, steps.start);
        let ends = steps.end == layers.steps;
        let (given, upstream) = match last_only {
            true if ends => (1, upstream),
            true => (2, 0),
            false => (
                0,
                upstream + (steps.start * layers.batch * self.hidden * 2) as u64,
            ),
        };
        let sums = (part * self.tiles(layers.batch) * 4 * self.hidden * 4) as u64;
        let arguments = [
            Argument::Address(io.scratch(Layout::packed_backward(layer))),
            gates,
            cells,
            Argument::Address(upstream),
            Argument::Address(io.scratch(Layout::bias_parts(layer)) + sums),
            Argument::Address(io.scratch(Layout::carry(layer))),
            Argument::Word(steps.len() as i32),
            Argument::Word(layers.batch as i32),
            Argument::Word(given),
            Argument::Word(i32::from(!ends)),
            Argument::Word(i32::from(steps.start > 0)),
        ];
        let grid = (self.cluster(), self.tiles(layers.batch));
        self.launch(
            io,
            "recurrence_backward",
            grid,
            32 * self.warps,
            self.backward_shared(),
            &arguments,
        )
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
