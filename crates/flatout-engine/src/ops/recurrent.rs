//! What LSTM and GRU share: sizes, parameters under PyTorch's names, and everything of a layer but the recurrence itself.

mod bidirectional;
pub(crate) mod cpu;
mod cuda;
pub(crate) mod scratch;
mod shape;

pub(crate) use cuda::{Layout, RECURRENCE, persistent_variants};
pub use cuda::{Way, force_recurrence};
pub use shape::{Layers, Recurrent, SequenceOutput};
