//! The output folder of a training: one training at a time works in it, and nothing of an earlier one is ever lost.

mod earlier;
mod lock;

pub(crate) use earlier::{bring_back, find, free_record, holds_training, keep_aside, put_aside};
pub use lock::FolderLock;
