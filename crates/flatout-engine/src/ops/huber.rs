//! Huber loss: squared near zero, linear beyond `delta`.

mod cpu;
mod cuda;
mod shape;

pub use shape::Huber;
