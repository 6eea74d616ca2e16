//! Random numbers that are a function of their place: the same on every machine, with any number of threads, for ever.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood 2014): output `i` of a stream is `mix(key + (i + 1) · golden)`. A stream's
//! key is hashed from the seed and a path of numbers (entity, day, sample …), so any value can be drawn without the ones
//! before it. Only integer arithmetic and exactly rounded floating-point operations are used: no `ln`, `cos` or `exp`, whose last bit
//! differs between maths libraries.

use flatout_core::random::GOLDEN;
pub use flatout_core::random::mix;

/// Hashes a seed and a path of numbers into one key.
pub fn key(seed: u64, path: &[u64]) -> u64 {
    path.iter().fold(mix(seed.wrapping_add(GOLDEN)), |state, &part| {
        mix(state.rotate_left(23) ^ mix(part.wrapping_add(GOLDEN)))
    })
}

/// One independent sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    pub fn new(seed: u64, path: &[u64]) -> Self {
        Self {
            state: key(seed, path),
        }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in `[0, 1)`, on a grid of 2⁻⁵³.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; 0 for an empty range. The bias of at most `bound / 2⁶⁴` is far below what any test could see.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Close to a standard normal: the sum of twelve uniform 16-bit numbers (mean 0, variance 1 up to 2⁻³²), tails to ±6.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let mut sum = 0u64;
        for _ in 0..3 {
            let bits = self.next_u64();
            sum += (bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48);
        }
        (sum as f64 - 12.0 * 32767.5) * (1.0 / 65536.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_never_change() {
        // Generated data is promised to the byte; these are the published outputs of SplitMix64 for state 0.
        let mut stream = Stream { state: 0 };
        assert_eq!(stream.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(stream.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(key(1, &[2, 3]), key(1, &[2, 3]));
        assert_ne!(key(1, &[2, 3]), key(1, &[3, 2]));
    }

    #[test]
    fn moments_are_right() {
        let mut stream = Stream::new(7, &[]);
        let normal: Vec<f64> = (0..100_000).map(|_| stream.normal()).collect();
        let mean = normal.iter().sum::<f64>() / normal.len() as f64;
        let variance = normal.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / normal.len() as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        assert!((0..1000).all(|_| stream.below(10) < 10));
        assert_eq!(stream.below(0), 0);
    }
}
