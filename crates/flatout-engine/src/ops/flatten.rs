//! Images as rows, in PyTorch's order.

mod cpu;
mod cuda;
mod shape;

pub use shape::Flatten;
