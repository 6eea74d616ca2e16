//! How parameters start: PyTorch's default schemes, from a seed.

use crate::random::Stream;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initialiser {
    Constant(f64),
    /// Uniform in ±bound.
    Uniform(f64),
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
}

impl Initialiser {
    /// PyTorch's default of linear and convolution layers (Kaiming uniform with a = √5), and of recurrent ones with their
    /// hidden size.
    pub fn fan(fan_in: usize) -> Self {
        Self::Uniform(1.0 / (fan_in.max(1) as f64).sqrt())
    }

    /// The value of one element of the parameter with number `purpose`.
    pub fn value(self, seed: u64, purpose: u64, index: u64) -> f64 {
        let stream = Stream::new(seed, purpose, u64::MAX);
        match self {
            Self::Constant(value) => value,
            Self::Uniform(bound) => (2.0 * stream.uniform(index) - 1.0) * bound,
            Self::Normal(deviation) => stream.normal(index) * deviation,
        }
    }
}
