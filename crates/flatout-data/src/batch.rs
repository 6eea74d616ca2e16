//! What a batch consists of, and the memory it is written to. The caller lends the memory, so it may be pinned for a GPU.

use crate::Result;
use crate::block::zeroed;
use crate::order::Position;

/// Values a sample has in each of a batch's buffers; 0 for the ones a data set does not fill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleShape {
    /// Numeric inputs: a row, a window `[sequence_length, features]`, or a normalised picture `[channels, height, width]`.
    pub inputs: usize,
    /// Categorical codes; for a window the entity.
    pub codes: usize,
    /// Raw pixels `[height, width, channels]`.
    pub pixels: usize,
    /// Real-valued targets.
    pub targets: usize,
    /// Class numbers (0 or 1 of them).
    pub classes: usize,
}

impl SampleShape {
    pub fn size_bytes(&self) -> usize {
        4 * (self.inputs + self.codes + self.targets + self.classes) + self.pixels
    }
}

/// Memory for one batch, lent for writing. Each slice holds `samples × shape` values.
#[derive(Debug, Default)]
pub struct BatchSlices<'a> {
    pub inputs: &'a mut [f32],
    pub codes: &'a mut [i32],
    pub pixels: &'a mut [u8],
    pub targets: &'a mut [f32],
    pub classes: &'a mut [i32],
}

/// Owned or pinned memory that a [`Prefetcher`](crate::Prefetcher) fills and hands round.
pub trait BatchMemory: Send {
    /// The first `samples` samples of every buffer.
    fn slices(&mut self, samples: usize) -> BatchSlices<'_>;
}

/// Ordinary memory for batches.
#[derive(Debug, Default)]
pub struct HostBatch {
    pub shape: SampleShape,
    pub inputs: Vec<f32>,
    pub codes: Vec<i32>,
    pub pixels: Vec<u8>,
    pub targets: Vec<f32>,
    pub classes: Vec<i32>,
}

impl HostBatch {
    pub fn new(shape: SampleShape, batch_size: usize) -> Self {
        Self {
            shape,
            inputs: zeroed(shape.inputs * batch_size),
            codes: vec![0; shape.codes * batch_size],
            pixels: zeroed(shape.pixels * batch_size),
            targets: vec![0.0; shape.targets * batch_size],
            classes: vec![0; shape.classes * batch_size],
        }
    }
}

impl BatchMemory for HostBatch {
    fn slices(&mut self, samples: usize) -> BatchSlices<'_> {
        let shape = self.shape;
        BatchSlices {
            inputs: &mut self.inputs[..samples * shape.inputs],
            codes: &mut self.codes[..samples * shape.codes],
            pixels: &mut self.pixels[..samples * shape.pixels],
            targets: &mut self.targets[..samples * shape.targets],
            classes: &mut self.classes[..samples * shape.classes],
        }
    }
}

/// Which epoch of which run a batch is filled for: all that randomness may depend on, beside the sample itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    pub seed: u64,
    pub epoch: u64,
}

/// Time spent getting the bytes, and time spent turning them into a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FillTime {
    pub fetch_ns: u64,
    pub prepare_ns: u64,
}

impl FillTime {
    pub fn add(&mut self, other: Self) {
        self.fetch_ns += other.fetch_ns;
        self.prepare_ns += other.prepare_ns;
    }
}

/// Anything that can write samples into a batch. `samples` are the numbers that the data set's `split` gave out.
pub trait SampleSource: Send + Sync {
    fn shape(&self) -> SampleShape;

    /// Fills the front of each slice; the slices hold exactly `samples.len()` samples.
    fn fill(&self, samples: &[u32], draw: Draw, into: BatchSlices<'_>) -> Result<FillTime>;
}

/// A batch as the consumer sees it.
#[derive(Debug)]
pub struct Filled<M> {
    pub memory: M,
    /// How many samples it has: less than the batch size in the last batch without `drop_last`.
    pub samples: usize,
    /// The numbers of those samples (only the first `samples` count).
    pub sample_ids: Vec<u32>,
    pub position: Position,
    pub time: FillTime,
}
