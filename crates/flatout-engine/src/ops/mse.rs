//! Mean squared error.

mod cpu;
mod cuda;
mod shape;

pub use shape::Mse;
