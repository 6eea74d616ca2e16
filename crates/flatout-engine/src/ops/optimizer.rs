//! Moves all parameters along their gradients in one pass.

mod cpu;
mod cuda;
mod shape;

pub(crate) use cpu::update;
pub(crate) use cuda::{KERNELS, NORM_PARTS, enqueue, enqueue_exchange, enqueue_norm};
pub use shape::{Optimizer, Rule};
