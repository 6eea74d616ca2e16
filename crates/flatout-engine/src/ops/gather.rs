//! Rows and windows of tables, brought together as a batch.

mod cpu;
mod cuda;
mod pictures;
mod shape;

pub use shape::{Augment, Gather, Kind, Pictures};
