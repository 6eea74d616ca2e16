//! The two small structures that host and card share; the kernels' twin is in kernels/common.cu.

/// Written by the host before each step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    pub valid_rows: i32,
    pub loss_weight: f32,
    pub learning_rate: f32,
    /// rate / (1 − β₁ᵗ).
    pub step_size: f32,
    /// 1 / √(1 − β₂ᵗ).
    pub correction: f32,
    /// 1 − rate · decay.
    pub keep: f32,
    /// Micro-batches so far: the key of dropout's random numbers.
    pub tick: u64,
    pub seed: u64,
    /// The update that this step belongs to, counted from 1.
    pub update: u64,
    /// With the seed and a picture's number, the key of what happens to it.
    pub epoch: u64,
}

impl Control {
    pub const BYTES: usize = size_of::<Self>();

    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [
            self.valid_rows.to_le_bytes(),
            self.loss_weight.to_le_bytes(),
            self.learning_rate.to_le_bytes(),
            self.step_size.to_le_bytes(),
            self.correction.to_le_bytes(),
            self.keep.to_le_bytes(),
        ];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word);
        }
        bytes[24..32].copy_from_slice(&self.tick.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.seed.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.update.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.epoch.to_le_bytes());
        bytes
    }
}

/// Written by the card, read when somebody asks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Results {
    /// Training, evaluation: sums over rows.
    pub loss: [f64; 2],
    pub rows: [f64; 2],
    pub norm: f32,
    pub factor: f32,
    /// One more than an index that pointed outside its table; 0 for none.
    pub bad_index: i32,
    /// Good updates since the scale last changed.
    pub good: i32,
    /// What gradients are multiplied with on their way through f16; 1 in other precisions.
    pub scale: f32,
    /// Updates left out because a gradient was not finite.
    pub skipped: i32,
    /// The first update whose loss was not finite; 0 for none.
    pub first_bad: u64,
}

impl Results {
    /// As the card wrote them; nothing where that is too short.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        if bytes.len() < size_of::<Self>() {
            return Self::default();
        }
        // SAFETY: long enough, and any bits are numbers.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}

const _: () = assert!(Control::BYTES == 56 && size_of::<Results>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_where_the_kernels_put_them() {
        let mut bytes = [0u8; 64];
        bytes[8..16].copy_from_slice(&2.5f64.to_le_bytes());
        bytes[24..32].copy_from_slice(&5f64.to_le_bytes());
        bytes[56..].copy_from_slice(&7u64.to_le_bytes());
        let results = Results::from_bytes(&bytes);
        assert_eq!(
            (results.loss[1], results.rows[1], results.first_bad),
            (2.5, 5.0, 7)
        );
        assert_eq!(Results::from_bytes(&bytes[..63]).first_bad, 0);
    }
}
