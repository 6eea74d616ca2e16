//! Dropout.

mod cpu;
mod cuda;
mod shape;

pub use shape::Dropout;
