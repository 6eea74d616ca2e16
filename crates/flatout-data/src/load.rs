//! From paths to data sets.

pub mod missing;
pub mod panel;
