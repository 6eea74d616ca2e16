//! Repeats a row at every time step, or averages over the time steps.

mod cpu;
mod cuda;
mod shape;

pub use shape::Steps;
