//! A mergeable histogram of durations with logarithmic buckets: any two can be added, so a run of a million steps
//! keeps a few dozen numbers.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Buckets an octave: a quantile is off by at most 2^(1/8) − 1 ≈ 9%, half of that in the bucket's middle.
const PER_OCTAVE: f64 = 8.0;
/// 500 years. What a damaged record puts beyond it would be an infinite time.
const LAST: u16 = 511;

/// Counts of durations in nanoseconds, bucket `k` holding `2^(k/8) ≤ d < 2^((k+1)/8)`. In JSON: `{"168": 12, …}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Histogram {
    #[serde(deserialize_with = "bounded")]
    buckets: BTreeMap<u16, u64>,
}

impl Histogram {
    pub fn bucket_of(nanoseconds: f64) -> u16 {
        if nanoseconds.is_nan() || nanoseconds <= 1.0 {
            0
        } else {
            (nanoseconds.log2() * PER_OCTAVE) as u16
        }
    }

    pub fn add_ms(&mut self, milliseconds: f64) {
        self.add_count(Self::bucket_of(milliseconds * 1e6), 1);
    }

    pub fn add_count(&mut self, bucket: u16, count: u64) {
        let entry = self.buckets.entry(bucket.min(LAST)).or_default();
        *entry = entry.saturating_add(count);
    }

    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &count) in &other.buckets {
            self.add_count(bucket, count);
        }
    }

    pub fn count(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The quantile in milliseconds: the geometric middle of its bucket. `None` when empty.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let target = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        self.buckets.iter().find_map(|(&bucket, &count)| {
            seen = seen.saturating_add(count);
            (seen >= target && count > 0).then(|| ((f64::from(bucket) + 0.5) / PER_OCTAVE).exp2() / 1e6)
        })
    }

    /// Bucket middles in milliseconds with their counts, ascending: for charts.
    pub fn bars_ms(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.buckets
            .iter()
            .map(|(&bucket, &count)| (((f64::from(bucket) + 0.5) / PER_OCTAVE).exp2() / 1e6, count))
    }
}

fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let mut histogram = Histogram::default();
    for (bucket, count) in BTreeMap::deserialize(from)? {
        histogram.add_count(bucket, count);
    }
    Ok(histogram.buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_time_is_finite() {
        let mut histogram: Histogram = serde_json::from_str(r#"{"168": 2, "21203": 3}"#).unwrap();
        histogram.add_ms(f64::INFINITY);
        assert_eq!(histogram.count(), 6);
        assert!(histogram.bars_ms().all(|(ms, _)| ms.is_finite()));
        assert!(histogram.quantile_ms(1.0).unwrap().is_finite());
    }

    proptest! {
        #[test]
        fn quantiles_are_near_the_exact_ones(values in prop::collection::vec(1e-3f64..1e5, 1..200), share in 0.0f64..1.0) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.add_ms(*value));
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let exact = sorted[((sorted.len() as f64 * share).ceil().max(1.0) as usize) - 1];
            let ratio = histogram.quantile_ms(share).unwrap() / exact;
            prop_assert!((0.95..=1.05).contains(&ratio), "ratio {ratio}");
        }

        #[test]
        fn merging_is_adding(a in prop::collection::vec(1e-3f64..1e5, 0..50), b in prop::collection::vec(1e-3f64..1e5, 0..50)) {
            let of = |values: &[f64]| { let mut h = Histogram::default(); values.iter().for_each(|v| h.add_ms(*v)); h };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }

    #[test]
    fn empty_and_absurd_values() {
        assert_eq!(Histogram::default().quantile_ms(0.5), None);
        let mut histogram = Histogram::default();
        for value in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            histogram.add_ms(value);
        }
        assert_eq!(histogram.count(), 4);
    }
}
