//! Moves all parameters along their gradients in one pass.

mod cpu;
mod shape;

pub(crate) use cpu::update;
pub use shape::{Optimizer, Rule};
