//! A rate that was measured in one trial or several, with its range.

use crate::Estimate;
use flatout_core::stats::Interval;
use serde::{Deserialize, Serialize};

/// A rate a second, with the range that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Pieces that a measurement is cut into for its interval: few enough that each holds several steps.
const PIECES: usize = 8;

impl Rate {
    /// The rate of the whole, with the interval of its pieces: `ends` are seconds since the beginning and what was done by then.
    pub fn of(ends: &[(f64, f64)]) -> Option<Self> {
        let &(seconds, done) = ends.last()?;
        if seconds <= 0.0 || done <= 0.0 {
            return None;
        }
        let mean = done / seconds;
        let pieces = PIECES.min(ends.len());
        let mut before = (0.0, 0.0);
        let mut rates = Vec::new();
        for piece in 1..=pieces {
            let end = ends[piece * ends.len() / pieces - 1];
            if end.0 > before.0 {
                rates.push((end.1 - before.1) / (end.0 - before.0));
            }
            before = end;
        }
        let half = Interval::of(&rates).map_or(mean, |interval| interval.high - interval.mean);
        // One piece alone has no interval: then it may be anything.
        let half = if half.is_finite() { half } else { mean };
        Some(Self {
            mean,
            low: (mean - half).max(0.0),
            high: mean + half,
        })
    }

    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// Half the interval's width, as a share of the mean.
    pub fn noise(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.mean.max(f64::MIN_POSITIVE)
    }

    /// Several measurements of the same: their mean, with an interval at least as wide as their spread.
    pub fn pooled(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = all.iter().map(|rate| rate.mean).sum::<f64>() / count;
        let half = all.iter().map(|rate| rate.high - rate.mean).sum::<f64>() / count / count.sqrt();
        let apart = all
            .iter()
            .map(|rate| (rate.mean - mean).abs())
            .fold(0.0, f64::max);
        let half = half.max(apart);
        (count > 0.0).then_some(Self {
            mean,
            low: (mean - half).max(0.0),
            high: mean + half,
        })
    }
}

impl From<Rate> for Estimate {
    fn from(rate: Rate) -> Self {
        Self {
            mean: rate.mean,
            interval: Some((rate.low, rate.high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_whole_and_its_interval_of_the_pieces() {
        let steady: Vec<(f64, f64)> = (1..=40)
            .map(|i| (f64::from(i) * 0.1, f64::from(i) * 32.0))
            .collect();
        let rate = Rate::of(&steady).unwrap();
        assert!((rate.mean - 320.0).abs() < 1e-9 && rate.high - rate.low < 1e-6);
        let mut uneven = steady.clone();
        for (index, end) in uneven.iter_mut().enumerate() {
            end.0 += if index >= 20 { 1.0 } else { 0.0 };
        }
        let rate = Rate::of(&uneven).unwrap();
        assert!((rate.mean - 256.0).abs() < 1e-9 && rate.low < 240.0);
        assert!(Rate::of(&[]).is_none() && Rate::of(&[(0.0, 0.0)]).is_none());
    }

    #[test]
    fn interval_covers_the_spread_of_repeated_measurements() {
        let rate = |mean: f64| Rate {
            mean,
            low: mean - 1.0,
            high: mean + 1.0,
        };
        let pooled = Rate::pooled(&[rate(100.0), rate(120.0)]).unwrap();
        assert!((pooled.mean - 110.0).abs() < 1e-9 && pooled.low <= 100.0 && pooled.high >= 120.0);
        assert!(Rate::pooled(&[]).is_none());
    }
}
