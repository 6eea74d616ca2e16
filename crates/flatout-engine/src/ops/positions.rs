//! A learned vector per time step, added to a sequence.

mod cpu;
mod cuda;
mod shape;

pub use shape::Positions;
