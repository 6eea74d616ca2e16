//! The position of the peak of each map, as a mean under a softmax over the pixels.

mod cpu;
mod cuda;
mod shape;

pub use shape::SoftArgmax;
