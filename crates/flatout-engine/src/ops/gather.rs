//! Rows and windows of tables, brought together as a batch.

mod cpu;
mod cuda;
mod shape;

pub use shape::{Gather, Kind};
