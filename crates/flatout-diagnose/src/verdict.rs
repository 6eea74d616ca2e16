//! The verdict at the end of a run: how busy, how steady, how hot, how long throttled, with a threshold beside every number.
//!
//! It is gathered sample by sample in constant memory, because a monitor may run for days. What could not be read stays
//! unknown; the time a GPU was not heard of counts for nothing.

mod distribution;

pub use distribution::{Distribution, Spread};
