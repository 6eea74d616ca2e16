//! `activation(a + b)`, the end of a residual block.

mod cpu;
mod cuda;
mod shape;

pub(crate) use cuda::{pass_gradient, vector};
pub use shape::Residual;
