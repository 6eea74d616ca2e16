//! Cross-entropy of logits against class numbers.

mod cpu;
mod cuda;
mod shape;

pub use shape::CrossEntropy;
