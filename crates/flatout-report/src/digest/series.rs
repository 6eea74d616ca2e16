//! A curve of bounded size: a day of seconds becomes a few hundred buckets, each with its least, mean and greatest value,
//! so that no peak disappears.

/// One stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub sum: f64,
    pub weight: f64,
    pub min: f64,
    pub max: f64,
}

impl Bucket {
    const EMPTY: Self = Self {
        sum: 0.0,
        weight: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
    };

    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Values over time, in equal buckets from 0 to the end.
#[derive(Clone, Debug)]
pub struct Series {
    width_s: f64,
    buckets: Vec<Bucket>,
}

impl Series {
    /// For a run of `length_s` in ticks of `tick_s`: no bucket shorter than a tick, no more than `most` of them.
    pub fn new(length_s: f64, tick_s: f64, most: usize) -> Self {
        let most = most.max(1);
        let ticks = (length_s / tick_s.max(1e-3)).ceil().max(1.0);
        let count = if ticks.is_finite() {
            (ticks as usize).min(most)
        } else {
            most
        };
        Self {
            width_s: (length_s / count as f64).max(1e-3),
            buckets: vec![Bucket::EMPTY; count],
        }
    }

    /// A value that stands for the time up to `t`. What is no number, or lies outside, does not count.
    pub fn add(&mut self, t: f64, value: f64, weight: f64) {
        if !value.is_finite() || weight.is_nan() || weight <= 0.0 || t.is_nan() || t < 0.0 {
            return;
        }
        let Some(last) = self.buckets.len().checked_sub(1) else {
            return;
        };
        // A tick at exactly the end of a bucket tells of the time before it.
        let index = ((t / self.width_s) - 1e-6).max(0.0) as usize;
        let bucket = &mut self.buckets[index.min(last)];
        bucket.sum += value * weight;
        bucket.weight += weight;
        bucket.min = bucket.min.min(value);
        bucket.max = bucket.max.max(value);
    }

    pub fn width_s(&self) -> f64 {
        self.width_s
    }

    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.weight == 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_single_peak_in_a_day_survives() {
        let mut series = Series::new(86_400.0, 1.0, 600);
        for second in 1..=86_400 {
            series.add(f64::from(second), if second == 40_000 { 1.0 } else { 0.0 }, 1.0);
        }
        assert_eq!(series.buckets().len(), 600);
        assert_eq!(
            series.buckets().iter().filter(|bucket| bucket.max == 1.0).count(),
            1
        );
        assert!(
            series
                .buckets()
                .iter()
                .all(|bucket| bucket.mean().is_some_and(|mean| mean <= 1.0))
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_breaks(
            length in prop::num::f64::ANY, tick in prop::num::f64::ANY,
            values in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..50),
        ) {
            let mut series = Series::new(length, tick, 100);
            for (t, value) in values {
                series.add(t, value, 1.0);
            }
            for bucket in series.buckets() {
                if let Some(mean) = bucket.mean().filter(|mean| mean.is_finite()) {
                    prop_assert!(bucket.min <= bucket.max && (mean >= bucket.min - mean.abs() * 1e-9));
                }
            }
        }
    }
}
