//! Rows of a trained table.

mod cpu;
mod cuda;
mod shape;

pub use shape::Embedding;
