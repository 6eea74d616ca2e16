//! The score of the best possible prediction, computed from the planted signal while the data are written.

use serde::{Deserialize, Serialize};

/// What a perfect model reaches: on all samples, and on the part that a split by the default rule validates on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum BestScore {
    Regression { all: Regression, validation: Regression },
}

impl BestScore {
    /// Name and value of each figure, for people.
    pub fn lines(&self) -> Vec<(String, f64)> {
        let Self::Regression { all, validation } = self;
        [("all", all), ("validation", validation)]
            .into_iter()
            .flat_map(|(part, score)| {
                [
                    ("mse", score.mse),
                    ("mae", score.mae),
                    ("r2", score.r2),
                    ("ic", score.ic),
                    ("directional_accuracy", score.directional_accuracy),
                ]
                .map(|(name, value)| (format!("{part}.{name}"), value))
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    pub mse: f64,
    pub mae: f64,
    pub r2: f64,
    /// Correlation of prediction and label ("information coefficient").
    pub ic: f64,
    /// Share of labels whose sign the prediction has.
    pub directional_accuracy: f64,
    pub samples: u64,
}

/// Sums over (label, best prediction); partial sums are added in a fixed order, so the result does not depend on threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegressionSums {
    count: u64,
    same_sign: u64,
    label: f64,
    label_squares: f64,
    prediction: f64,
    prediction_squares: f64,
    product: f64,
    absolute_error: f64,
}

impl RegressionSums {
    pub fn push(&mut self, label: f64, prediction: f64) {
        self.count += 1;
        self.same_sign += u64::from((label > 0.0) == (prediction > 0.0));
        self.label += label;
        self.label_squares += label * label;
        self.prediction += prediction;
        self.prediction_squares += prediction * prediction;
        self.product += label * prediction;
        self.absolute_error += (label - prediction).abs();
    }

    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.same_sign += other.same_sign;
        self.label += other.label;
        self.label_squares += other.label_squares;
        self.prediction += other.prediction;
        self.prediction_squares += other.prediction_squares;
        self.product += other.product;
        self.absolute_error += other.absolute_error;
    }

    pub fn finish(&self) -> Regression {
        let count = (self.count.max(1)) as f64;
        let mse = (self.label_squares - 2.0 * self.product + self.prediction_squares) / count;
        let variance = |sum: f64, squares: f64| (squares / count - (sum / count) * (sum / count)).max(1e-300);
        let label_variance = variance(self.label, self.label_squares);
        let prediction_variance = variance(self.prediction, self.prediction_squares);
        let covariance = self.product / count - (self.label / count) * (self.prediction / count);
        Regression {
            mse,
            mae: self.absolute_error / count,
            r2: 1.0 - mse / label_variance,
            ic: covariance / (label_variance.sqrt() * prediction_variance.sqrt()),
            directional_accuracy: self.same_sign as f64 / count,
            samples: self.count,
        }
    }
}
