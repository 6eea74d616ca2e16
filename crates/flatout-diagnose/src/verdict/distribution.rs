//! A ratio over time, in constant memory: moments and a histogram, both weighted by the time each value stood for.

use serde::{Deserialize, Serialize};

/// Half a percentage point a bin. NVML gives whole points, and a bin remembers the mean of what fell into it, so
/// quantiles of whole points are exact.
const BINS_PER_POINT: f64 = 2.0;
const BINS: usize = 201;

/// Values from 0 to 1, each with the seconds it stood for.
#[derive(Clone, Debug)]
pub struct Distribution {
    count: u64,
    seconds: f64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    seconds: f64,
    sum: f64,
}

/// What a distribution says, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    pub count: u64,
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub p5: f64,
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            count: 0,
            seconds: 0.0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            bins: vec![Bin::default(); BINS],
        }
    }
}

impl Distribution {
    /// Adds a value that stood for some seconds. What is no number, or stood for no time, is passed over.
    pub fn add(&mut self, value: f64, seconds: f64) {
        if !value.is_finite() || !seconds.is_finite() || seconds <= 0.0 {
            return;
        }
        let value = value.clamp(0.0, 1.0);
        self.count += 1;
        self.seconds += seconds;
        let away = value - self.mean;
        self.mean += away * seconds / self.seconds;
        self.squares += seconds * away * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let bin = &mut self.bins[bin_of(value)];
        bin.seconds += seconds;
        bin.sum += seconds * value;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// `None` without a single value.
    pub fn spread(&self) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            count: self.count,
            mean: self.mean,
            std: self.std(),
            min: self.min,
            p5: self.quantile(0.05),
            p50: self.quantile(0.5),
            p95: self.quantile(0.95),
            max: self.max,
        })
    }

    /// The share of the time in which the value was below `limit`; exact at half percentage points.
    pub fn share_below(&self, limit: f64) -> Option<f64> {
        let below = self.bins[..bin_of(limit)].iter().map(|bin| bin.seconds);
        (self.seconds > 0.0).then(|| (below.sum::<f64>() / self.seconds).clamp(0.0, 1.0))
    }

    fn std(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        (self.squares / self.seconds * count / (count - 1.0))
            .max(0.0)
            .sqrt()
    }

    fn quantile(&self, share: f64) -> f64 {
        let target = share * self.seconds;
        let mut seen = 0.0;
        for bin in self.bins.iter().filter(|bin| bin.seconds > 0.0) {
            seen += bin.seconds;
            if seen >= target {
                return bin.sum / bin.seconds;
            }
        }
        self.max
    }
}

fn bin_of(value: f64) -> usize {
    // The small addend keeps 0.85, which is not exact in binary, in the bin that begins at 85 points.
    ((value * 100.0 * BINS_PER_POINT + 1e-9) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::stats::Summary;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|value| distribution.add(*value, 1.0));
        distribution
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_exact_summary(points in prop::collection::vec(0u8..=100, 1..300)) {
            let values: Vec<f64> = points.iter().map(|point| f64::from(*point) / 100.0).collect();
            let (spread, exact) = (of(&values).spread().unwrap(), Summary::of(&values).unwrap());
            for (streamed, exact) in [(spread.mean, exact.mean), (spread.std, exact.std), (spread.min, exact.min), (spread.max, exact.max)] {
                prop_assert!((streamed - exact).abs() < 1e-9, "{streamed} {exact}");
            }
            let share = values.iter().filter(|value| **value < 0.85).count() as f64 / values.len() as f64;
            prop_assert!((of(&values).share_below(0.85).unwrap() - share).abs() < 1e-9);
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted[(sorted.len() as f64 * 0.5).ceil() as usize - 1];
            prop_assert!((spread.p50 - middle).abs() < 1e-9, "{} {middle}", spread.p50);
        }
    }

    #[test]
    fn a_value_counts_by_its_time() {
        let mut distribution = Distribution::default();
        distribution.add(1.0, 3.0);
        distribution.add(0.0, 1.0);
        assert!((distribution.mean().unwrap() - 0.75).abs() < 1e-12);
        assert!((distribution.share_below(0.1).unwrap() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn nothing_known_is_unknown_and_absurd_values_are_passed_over() {
        let mut distribution = Distribution::default();
        assert!(distribution.spread().is_none() && distribution.share_below(0.5).is_none());
        distribution.add(f64::NAN, 1.0);
        distribution.add(0.5, -1.0);
        assert!(distribution.mean().is_none());
        distribution.add(371.0, 1.0);
        assert_eq!(distribution.mean(), Some(1.0));
    }
}
