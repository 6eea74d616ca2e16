//! A curve of bounded size: a day of seconds becomes a few hundred buckets, each with its least, mean and greatest value,
//! so that no peak disappears.

/// What lies later is no time of a training.
const LONGEST_S: f64 = 1e10;

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

/// Values over time, in equal buckets from 0 on. How long a run gets need not be known: buckets become wider as it goes on.
#[derive(Clone, Debug)]
pub struct Series {
    width_s: f64,
    most: usize,
    buckets: Vec<Bucket>,
}

impl Series {
    /// No bucket shorter than a tick, no more than `most` of them.
    pub fn new(tick_s: f64, most: usize) -> Self {
        Self {
            width_s: if tick_s.is_finite() {
                tick_s.clamp(1e-3, 1e6)
            } else {
                1.0
            },
            most: most.max(2),
            buckets: Vec::new(),
        }
    }

    /// A value that stands for the time up to `t`. What is no number, or lies outside, does not count.
    pub fn add(&mut self, t: f64, value: f64, weight: f64) {
        if !value.is_finite() || weight.is_nan() || weight <= 0.0 || !(0.0..LONGEST_S).contains(&t) {
            return;
        }
        // A tick at exactly the end of a bucket tells of the time before it.
        let index = |width_s: f64| ((t / width_s) - 1e-6).max(0.0) as usize;
        while index(self.width_s) >= self.most {
            self.widen();
        }
        let index = index(self.width_s);
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, Bucket::EMPTY);
        }
        let bucket = &mut self.buckets[index];
        bucket.sum += value * weight;
        bucket.weight += weight;
        bucket.min = bucket.min.min(value);
        bucket.max = bucket.max.max(value);
    }

    fn widen(&mut self) {
        self.width_s *= 2.0;
        let pairs = self.buckets.chunks(2).map(|pair| {
            let mut both = Bucket::EMPTY;
            for one in pair {
                both.sum += one.sum;
                both.weight += one.weight;
                both.min = both.min.min(one.min);
                both.max = both.max.max(one.max);
            }
            both
        });
        self.buckets = pairs.collect();
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
        let mut series = Series::new(1.0, 900);
        for second in 1..=86_400 {
            series.add(f64::from(second), if second == 40_000 { 1.0 } else { 0.0 }, 1.0);
        }
        assert!((450..=900).contains(&series.buckets().len()));
        assert!((series.width_s() - 128.0).abs() < 1e-9);
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
            tick in prop::num::f64::ANY,
            values in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..50),
        ) {
            let mut series = Series::new(tick, 100);
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
