//! Mean squared error.

mod cpu;
mod shape;

pub use shape::Mse;
