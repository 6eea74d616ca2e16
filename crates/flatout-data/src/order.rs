//! The order of samples in an epoch: a keyed permutation that is computed, not stored.
//!
//! `Permutation` is a generalised Feistel network over `Z_a × Z_b` with `a·b` just above the number of samples; the few values outside
//! are walked through the network again. Any position can be asked for at any time, from any thread, with nothing allocated:
//! that makes resuming exact and the order independent of the number of threads. A GPU can compute it too.

use crate::gather;
use crate::random::{key, mix};
use std::sync::Arc;

const ROUNDS: usize = 6;

/// A random-looking bijection of `0..count`, chosen by `(seed, epoch)`.
#[derive(Debug, Clone)]
pub struct Permutation {
    count: u32,
    columns: u32,
    rows: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    pub fn new(count: u32, seed: u64, epoch: u64) -> Self {
        let columns = (f64::from(count).sqrt().ceil() as u32).max(2);
        let rows = count.div_ceil(columns).max(2);
        let keys = std::array::from_fn(|round| key(seed, &[epoch, round as u64]));
        Self {
            count,
            columns,
            rows,
            keys,
        }
    }

    /// What stands at `position`, for `position < count`.
    #[inline]
    pub fn get(&self, position: u32) -> u32 {
        self.walk(u64::from(position))
    }

    /// Goes through the network until a value within the count comes out.
    fn walk(&self, mut value: u64) -> u32 {
        loop {
            let columns = u64::from(self.columns);
            let (mut left, mut right) = ([value % columns], [value / columns]);
            self.turn_all(&mut left, &mut right);
            value = right[0] * columns + left[0];
            if value < u64::from(self.count) {
                return value as u32;
            }
        }
    }

    /// What stands at `first` and the places behind it.
    pub fn fill(&self, first: u32, into: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
            // SAFETY: the processor has both.
            unsafe { self.fill_wide(first, into) };
            return;
        }
        self.fill_lanes(first, into);
    }

    /// The same with products of eight numbers at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn fill_wide(&self, first: u32, into: &mut [u32]) {
        self.fill_lanes(first, into);
    }

    #[inline(always)]
    fn fill_lanes(&self, first: u32, into: &mut [u32]) {
        const LANES: usize = 16;
        let columns = u64::from(self.columns);
        let (mut column, mut row) = (u64::from(first) % columns, u64::from(first) / columns);
        for slots in into.chunks_mut(LANES) {
            let (mut left, mut right) = ([0; LANES], [0; LANES]);
            for lane in 0..LANES {
                (left[lane], right[lane]) = (column, row);
                column += 1;
                if column == columns {
                    (column, row) = (0, row + 1);
                }
            }
            self.turn_all(&mut left, &mut right);
            for (slot, (left, right)) in slots.iter_mut().zip(left.iter().zip(right)) {
                let value = right * columns + left;
                *slot = if value < u64::from(self.count) {
                    value as u32
                } else {
                    self.walk(value)
                };
            }
        }
    }

    #[inline(always)]
    fn turn_all<const LANES: usize>(&self, left: &mut [u64; LANES], right: &mut [u64; LANES]) {
        for pair in self.keys.chunks_exact(2) {
            for lane in 0..LANES {
                left[lane] = turn(left[lane], right[lane], pair[0], self.columns);
            }
            for lane in 0..LANES {
                right[lane] = turn(right[lane], left[lane], pair[1], self.rows);
            }
        }
    }
}

/// `(value + hash(other)) mod modulus`
#[inline(always)]
fn turn(value: u64, other: u64, key: u64, modulus: u32) -> u64 {
    let hash = mix(other ^ key) >> 32;
    let sum = value + ((hash * u64::from(modulus)) >> 32);
    if sum >= u64::from(modulus) {
        sum - u64::from(modulus)
    } else {
        sum
    }
}

/// Where a run stands: the next batch to train on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Position {
    pub epoch: u64,
    pub batch: u64,
}

/// All epochs' batches over one set of samples.
#[derive(Debug, Clone)]
pub struct EpochOrder {
    samples: Arc<[u32]>,
    batch_size: usize,
    drop_last: bool,
    /// `None`: in the order of the samples.
    shuffle_seed: Option<u64>,
}

impl EpochOrder {
    pub fn new(samples: Arc<[u32]>, batch_size: usize, drop_last: bool, shuffle_seed: Option<u64>) -> Self {
        Self {
            samples,
            batch_size: batch_size.max(1),
            drop_last,
            shuffle_seed,
        }
    }

    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    pub fn samples(&self) -> &[u32] {
        &self.samples
    }

    /// The seed that also drives augmentation.
    pub fn seed(&self) -> u64 {
        self.shuffle_seed.unwrap_or(0)
    }

    pub fn batches_per_epoch(&self) -> u64 {
        let (count, size) = (self.samples.len(), self.batch_size);
        (if self.drop_last {
            count / size
        } else {
            count.div_ceil(size)
        }) as u64
    }

    /// Samples in an epoch (without those that `drop_last` drops).
    pub fn samples_per_epoch(&self) -> u64 {
        if self.drop_last {
            self.batches_per_epoch() * self.batch_size as u64
        } else {
            self.samples.len() as u64
        }
    }

    /// Writes the samples of one batch to the front of `into` and returns their number: `batch_size`, less for the last
    /// batch without `drop_last`, 0 behind the end of the epoch.
    pub fn fill(&self, position: Position, into: &mut [u32]) -> usize {
        if position.batch >= self.batches_per_epoch() {
            return 0;
        }
        let first = position.batch as usize * self.batch_size;
        let count = self.batch_size.min(self.samples.len() - first).min(into.len());
        match self.shuffle_seed {
            None => into[..count].copy_from_slice(&self.samples[first..first + count]),
            Some(seed) => {
                let permutation = Permutation::new(self.samples.len() as u32, seed, position.epoch);
                // The samples lie all over their list: each is asked for before the first is needed. (Looked up one by one they were 13%
                // of the time in a profile of windows.)
                permutation.fill(first as u32, &mut into[..count]);
                for slot in &into[..count] {
                    gather::ask_for(&self.samples, *slot as usize);
                }
                for slot in &mut into[..count] {
                    *slot = self.samples[*slot as usize];
                }
            }
        }
        count
    }

    /// The batch after `position`, which may be the first of the next epoch.
    pub fn after(&self, position: Position) -> Position {
        if position.batch + 1 < self.batches_per_epoch() {
            Position {
                batch: position.batch + 1,
                ..position
            }
        } else {
            Position {
                epoch: position.epoch + 1,
                batch: 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_sample_once_an_epoch(count in 0u32..3000, seed: u64, epoch in 0u64..5, size in 1usize..70) {
            let order = EpochOrder::new((0..count).map(|i| i * 3).collect(), size, false, Some(seed));
            let (mut seen, mut buffer) = (Vec::new(), vec![0; size]);
            for batch in 0..order.batches_per_epoch() {
                let filled = order.fill(Position { epoch, batch }, &mut buffer);
                seen.extend_from_slice(&buffer[..filled]);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..count).map(|i| i * 3).collect::<Vec<_>>());
        }

        #[test]
        fn batched_lookup_equals_single_lookups(count in 1u32..5000, seed: u64, first in 0u32..5000, length in 0usize..100) {
            let permutation = Permutation::new(count, seed, 1);
            let first = first % count;
            let mut into = vec![0; length.min((count - first) as usize)];
            permutation.fill(first, &mut into);
            let single: Vec<u32> = (first..).take(into.len()).map(|place| permutation.get(place)).collect();
            prop_assert_eq!(into, single);
        }

        #[test]
        fn drop_last_keeps_whole_batches_only(count in 0u32..500, size in 1usize..70) {
            let order = EpochOrder::new((0..count).collect(), size, true, Some(1));
            prop_assert_eq!(order.samples_per_epoch(), (count as usize / size * size) as u64);
            let mut buffer = vec![0; size];
            for batch in 0..order.batches_per_epoch() {
                prop_assert_eq!(order.fill(Position { epoch: 0, batch }, &mut buffer), size);
            }
            prop_assert_eq!(order.fill(Position { epoch: 0, batch: order.batches_per_epoch() }, &mut buffer), 0);
        }
    }

    #[test]
    fn positions_are_uniform() {
        // Where sample 0 … 9 of 100 lands over 20 000 epochs: chi-square with 99 degrees of freedom, 0.1% point 148.
        for sample in 0..10 {
            let mut counts = [0f64; 100];
            for epoch in 0..20_000 {
                counts[Permutation::new(100, 5, epoch).get(sample) as usize] += 1.0;
            }
            let chi: f64 = counts
                .iter()
                .map(|count| (count - 200.0) * (count - 200.0) / 200.0)
                .sum();
            assert!(chi < 160.0, "sample {sample}: {chi}");
        }
    }

    #[test]
    fn neighbours_and_epochs_are_unrelated() {
        let permutation = Permutation::new(100_000, 3, 0);
        let distance: f64 = (0..99_999)
            .map(|i| (f64::from(permutation.get(i)) - f64::from(permutation.get(i + 1))).abs())
            .sum::<f64>()
            / 99_999.0;
        assert!((distance - 33_333.0).abs() < 500.0, "{distance}");
        let next = Permutation::new(100_000, 3, 1);
        let same = (0..100_000)
            .filter(|&i| permutation.get(i) == next.get(i))
            .count();
        assert!(same < 10, "{same}");
    }
}
