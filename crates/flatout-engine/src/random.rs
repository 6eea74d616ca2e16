//! Counter-based random numbers: a value is a pure function of (seed, stream, index), so it is the same on every thread and
//! every device, in any order, and backward can draw a mask again instead of keeping it.

use flatout_core::random::{GOLDEN, mix};

/// A stream of random numbers: one parameter's initial values, one dropout layer in one step.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

impl Stream {
    pub fn new(seed: u64, purpose: u64, step: u64) -> Self {
        let key = mix(seed.wrapping_add(GOLDEN));
        let key = mix(key ^ purpose.wrapping_mul(GOLDEN));
        Self {
            key: mix(key ^ step.wrapping_mul(0xd1b5_4a32_d192_ed03)),
        }
    }

    /// 64 random bits for an element.
    #[inline(always)]
    pub fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline(always)]
    pub fn uniform(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Standard normal (Box–Muller; each element takes two numbers of its own).
    pub fn normal(self, index: u64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform(2 * index)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(2 * index + 1)).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_independence_of_streams() {
        let count = 100_000;
        let stream = Stream::new(7, 1, 2);
        let uniform: Vec<f64> = (0..count).map(|index| stream.uniform(index)).collect();
        let mean = uniform.iter().sum::<f64>() / count as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let normal: Vec<f64> = (0..count).map(|index| stream.normal(index)).collect();
        let variance = normal.iter().map(|value| value * value).sum::<f64>() / count as f64;
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        let other = Stream::new(7, 1, 3);
        let product: f64 = (0..count)
            .map(|i| (stream.uniform(i) - 0.5) * (other.uniform(i) - 0.5))
            .sum();
        assert!((product / count as f64).abs() < 0.002);
        assert_eq!(Stream::new(7, 1, 2).bits(9), stream.bits(9));
    }
}
