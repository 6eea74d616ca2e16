//! The exact GELU, `x · Φ(x)`.

mod cpu;
mod cuda;
mod shape;

pub(crate) use cpu::{apply_all, slope_all};
pub use shape::Gelu;
