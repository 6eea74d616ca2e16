//! Launches of kernels that walk over `[rows, channels]` and add up columns; their half is `Columns` in kernels/common.cu.

use super::driver::Argument;
use super::error::CudaError;
use super::machine::Machine;

const THREADS: usize = 256;
/// Blocks that share the rows: enough for every card, few enough that their sums are quickly added up.
const MOST_PARTS: usize = 512;
/// Rows that a line of threads should have at least.
const ROWS_A_LINE: usize = 4;

/// How rows and channels are divided among threads: by sizes alone, so that sums have one order on every card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    rows: usize,
    channels: usize,
}

impl Columns {
    pub fn new(rows: usize, channels: usize) -> Self {
        Self { rows, channels }
    }

    /// Channels that a thread takes with one access.
    pub fn vector(&self) -> usize {
        if self.channels.is_multiple_of(8) { 8 } else { 1 }
    }

    /// A kernel's name for this width.
    pub fn name(&self, kernel: &str) -> String {
        format!("{kernel}_{}", self.vector())
    }

    fn groups(&self) -> usize {
        self.channels / self.vector()
    }

    /// Sums of each channel that a launch leaves behind.
    pub fn parts(&self) -> usize {
        let lines = THREADS / self.groups().min(THREADS);
        self.rows.div_ceil(lines * ROWS_A_LINE).clamp(1, MOST_PARTS)
    }

    /// Bytes of `sums` sums a channel of each part.
    pub fn bytes(&self, sums: usize) -> usize {
        self.parts() * sums * self.channels * 4
    }

    pub fn launch(&self, machine: &Machine, kernel: &str, arguments: &[Argument]) -> Result<(), CudaError> {
        let grid = (self.parts(), self.groups().div_ceil(THREADS));
        machine.blocks(&self.name(kernel), grid, THREADS, arguments)
    }

    /// `target[channel] += Σ parts`, in the order of the parts.
    pub fn add(&self, machine: &Machine, parts: u64, target: u64) -> Result<(), CudaError> {
        sum_parts(machine, parts, target, self.parts(), self.channels, self.channels)
    }
}

/// `target[column] += Σ parts[part · stride + column]`.
pub(crate) fn sum_parts(
    machine: &Machine,
    parts: u64,
    target: u64,
    count: usize,
    columns: usize,
    stride: usize,
) -> Result<(), CudaError> {
    let arguments = [
        Argument::Address(parts),
        Argument::Address(target),
        Argument::Word(count as i32),
        Argument::Word(columns as i32),
        Argument::Word(stride as i32),
    ];
    machine.blocks("sum_parts", (columns.div_ceil(32), 1), 1024, &arguments)
}
