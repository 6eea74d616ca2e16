//! Images made larger, each pixel a copy of the nearest.

mod cpu;
mod cuda;
mod shape;

pub use shape::Upsample;
