//! The output folder of a training: one training at a time works in it, and nothing of an earlier one is ever lost.

mod earlier;
mod lock;

pub(crate) use earlier::{free_record, holds_training, put_aside};
pub use lock::FolderLock;
