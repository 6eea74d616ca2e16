//! Moves all parameters along their gradients in one pass.

mod cpu;
mod cuda;
mod shape;

pub(crate) use cpu::update;
pub(crate) use cuda::{KERNELS, NORM_PARTS, enqueue};
pub use shape::{Optimizer, Rule};
