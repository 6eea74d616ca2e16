//! `activation(x · Wᵀ + b)`.

mod cpu;
mod cuda;
mod shape;

pub use shape::Linear;
