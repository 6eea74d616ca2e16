//! `activation(x · Wᵀ + b)`.

mod cpu;
mod shape;

pub use shape::Linear;
