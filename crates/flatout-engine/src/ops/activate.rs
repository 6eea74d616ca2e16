//! An activation that is not fused behind another operation.

mod cpu;
mod cuda;
mod shape;

pub use shape::Activate;
