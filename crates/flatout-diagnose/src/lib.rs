//! From what was measured to what it means. Pure: no I/O, no clock, no GPU.
//!
//! - [`verdict`]: how the GPUs did, in numbers with a threshold beside each.

pub mod verdict;
