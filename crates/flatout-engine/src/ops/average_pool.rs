//! The mean over all pixels of an image.

mod cpu;
mod cuda;
mod shape;

pub use shape::AveragePool;
