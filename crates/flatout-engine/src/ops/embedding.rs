//! Rows of a trained table.

mod cpu;
mod shape;

pub use shape::Embedding;
