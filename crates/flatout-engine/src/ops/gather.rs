//! Rows and windows of tables, brought together as a batch.

mod cpu;
mod shape;

pub use shape::{Gather, Kind};
