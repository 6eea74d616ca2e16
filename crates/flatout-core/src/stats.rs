//! Statistics with their spread: a bare number is never shown where an interval can be.

use serde::{Deserialize, Serialize};

/// Mean, spread and quantiles of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    pub count: usize,
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub p5: f64,
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

impl Summary {
    /// `None` without a single finite value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let mean = mean(&sorted);
        Some(Self {
            count: sorted.len(),
            mean,
            std: deviation(&sorted, mean),
            min,
            p5: quantile(&sorted, 0.05),
            p50: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            max,
        })
    }
}

/// A value with the range that holds its true mean with 95% confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Student's interval of the mean. One value alone has no interval: low and high are then infinite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return None;
        }
        let mean = mean(&values);
        if values.len() == 1 {
            return Some(Self {
                mean,
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            });
        }
        let half = student_95(values.len() - 1) * deviation(&values, mean) / (values.len() as f64).sqrt();
        Some(Self {
            mean,
            low: mean - half,
            high: mean + half,
        })
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation; 0 for a single value.
pub fn deviation(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The quantile of sorted values, linear between neighbours; NaN of nothing.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = share.clamp(0.0, 1.0) * last as f64;
    let (below, fraction) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * fraction
}

/// Two-sided 95% quantile of Student's t (exact to three digits up to 30 degrees of freedom).
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    TABLE
        .get(freedom.saturating_sub(1))
        .copied()
        .unwrap_or(1.96 + 2.5 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((summary.mean - 5.0).abs() < 1e-12 && (summary.std - 2.138).abs() < 1e-3);
        assert!((summary.p50 - 4.5).abs() < 1e-12);
        assert!(Summary::of(&[f64::NAN]).is_none());
        let interval = Interval::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((interval.high - (2.0 + 4.303 / 3f64.sqrt())).abs() < 1e-9);
        assert!(Interval::of(&[1.0]).unwrap().high.is_infinite());
    }

    proptest! {
        #[test]
        fn quantiles_stay_in_range_and_order(mut values in prop::collection::vec(-1e9f64..1e9, 1..50), a in 0.0f64..1.0, b in 0.0f64..1.0) {
            values.sort_by(f64::total_cmp);
            let (low, high) = (quantile(&values, a.min(b)), quantile(&values, a.max(b)));
            prop_assert!(low <= high && low >= values[0] && high <= values[values.len() - 1]);
        }
    }
}
