//! Keeps every n-th time step, counted from the last one, or reverses the time.

mod cpu;
mod cuda;
mod shape;

pub use shape::SelectSteps;
