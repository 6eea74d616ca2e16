//! Scores of an evaluation. All sums are f64; nothing is kept but sums, so a large validation set costs no memory.

use serde::{Deserialize, Serialize};

/// Of a regression.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub loss: f64,
    pub mae: f64,
    /// Share of predictions with the target's sign.
    pub directional_accuracy: f64,
    /// Pearson's correlation of prediction and target.
    pub ic: f64,
    pub samples: u64,
}

#[derive(Default)]
pub struct RegressionMeter {
    count: f64,
    squared: f64,
    absolute: f64,
    directions: f64,
    sums: [f64; 5],
}

impl RegressionMeter {
    pub fn add(&mut self, prediction: f32, target: f32) {
        let (p, t) = (f64::from(prediction), f64::from(target));
        self.count += 1.0;
        self.squared += (p - t) * (p - t);
        self.absolute += (p - t).abs();
        self.directions += f64::from(u8::from((p > 0.0) == (t > 0.0)));
        for (sum, value) in self.sums.iter_mut().zip([p, t, p * p, t * t, p * t]) {
            *sum += value;
        }
    }

    /// `None` without a single sample.
    pub fn scores(&self) -> Option<Scores> {
        let count = self.count;
        if count == 0.0 {
            return None;
        }
        let [p, t, pp, tt, pt] = self.sums.map(|sum| sum / count);
        let spread = ((pp - p * p) * (tt - t * t)).sqrt();
        Some(Scores {
            loss: self.squared / count,
            mae: self.absolute / count,
            directional_accuracy: self.directions / count,
            ic: if spread > 0.0 {
                (pt - p * t) / spread
            } else {
                f64::NAN
            },
            samples: count as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scores() {
        let mut meter = RegressionMeter::default();
        assert!(meter.scores().is_none());
        for (prediction, target) in [(1.0, 2.0), (2.0, 4.0), (-1.0, -2.0), (1.0, -1.0)] {
            meter.add(prediction, target);
        }
        let scores = meter.scores().unwrap();
        assert!((scores.loss - (1.0 + 4.0 + 1.0 + 4.0) / 4.0).abs() < 1e-12);
        assert!((scores.mae - 1.5).abs() < 1e-12 && (scores.directional_accuracy - 0.75).abs() < 1e-12);
        // numpy.corrcoef([1, 2, -1, 1], [2, 4, -2, -1])
        assert!((scores.ic - 0.841_725_623).abs() < 1e-6, "{}", scores.ic);
    }
}
