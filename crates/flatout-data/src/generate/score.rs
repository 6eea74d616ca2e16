//! The score of the best possible prediction, computed from the planted signal while the data are written.

use serde::{Deserialize, Serialize};

/// What a perfect model reaches: on all samples, and on the part that a split by the default rule validates on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum BestScore {
    Regression {
        all: Regression,
        validation: Regression,
    },
    /// Two classes, predicted as a probability.
    Classification {
        all: Classification,
        validation: Classification,
    },
    /// Several classes.
    Classes {
        all: Accuracy,
        validation: Accuracy,
    },
}

impl BestScore {
    /// Name and value of each figure, for people.
    pub fn lines(&self) -> Vec<(String, f64)> {
        let parts: [(&str, Vec<(&str, f64)>); 2] = match self {
            Self::Regression { all, validation } => {
                [("all", all.figures()), ("validation", validation.figures())]
            }
            Self::Classification { all, validation } => {
                [("all", all.figures()), ("validation", validation.figures())]
            }
            Self::Classes { all, validation } => [
                ("all", vec![("accuracy", all.accuracy)]),
                ("validation", vec![("accuracy", validation.accuracy)]),
            ],
        };
        parts
            .into_iter()
            .flat_map(|(part, figures)| {
                figures
                    .into_iter()
                    .map(move |(name, value)| (format!("{part}.{name}"), value))
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    pub accuracy: f64,
    pub samples: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// Area under the ROC curve.
    pub auc: f64,
    pub accuracy: f64,
    pub log_loss: f64,
    pub samples: u64,
}

impl Classification {
    fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("auc", self.auc),
            ("accuracy", self.accuracy),
            ("log_loss", self.log_loss),
        ]
    }
}

impl Regression {
    fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("mse", self.mse),
            ("mae", self.mae),
            ("r2", self.r2),
            ("ic", self.ic),
            ("directional_accuracy", self.directional_accuracy),
        ]
    }
}

/// Labels and best probabilities of two classes.
#[derive(Debug, Clone, Default)]
pub struct ClassificationSums {
    outcomes: Vec<(f64, bool)>,
}

impl ClassificationSums {
    pub fn push(&mut self, label: bool, probability: f64) {
        self.outcomes.push((probability, label));
    }

    pub fn add(&mut self, mut other: Self) {
        self.outcomes.append(&mut other.outcomes);
    }

    pub fn finish(mut self) -> Classification {
        self.outcomes.sort_by(|left, right| left.0.total_cmp(&right.0));
        let count = self.outcomes.len().max(1) as f64;
        let positives = self.outcomes.iter().filter(|(_, label)| *label).count() as f64;
        // Rank sum with the mean rank for ties.
        let (mut rank_sum, mut start) = (0.0, 0);
        while start < self.outcomes.len() {
            let value = self.outcomes[start].0;
            let end = start
                + self.outcomes[start..]
                    .iter()
                    .take_while(|(other, _)| *other == value)
                    .count();
            let tied = self.outcomes[start..end]
                .iter()
                .filter(|(_, label)| *label)
                .count() as f64;
            rank_sum += tied * (start + end + 1) as f64 / 2.0;
            start = end;
        }
        let pairs = positives * (count - positives);
        let right = self
            .outcomes
            .iter()
            .filter(|(probability, label)| (*probability > 0.5) == *label)
            .count();
        let loss: f64 = self
            .outcomes
            .iter()
            .map(|(probability, label)| {
                -(if *label { *probability } else { 1.0 - probability })
                    .max(1e-12)
                    .ln()
            })
            .sum();
        Classification {
            auc: if pairs > 0.0 {
                (rank_sum - positives * (positives + 1.0) / 2.0) / pairs
            } else {
                0.5
            },
            accuracy: right as f64 / count,
            // Six digits: the last bits of a logarithm differ between maths libraries.
            log_loss: (loss / count * 1e6).round() / 1e6,
            samples: self.outcomes.len() as u64,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_under_the_curve_counts_pairs() {
        let mut sums = ClassificationSums::default();
        for (label, probability) in [(false, 0.1), (true, 0.4), (false, 0.4), (true, 0.9)] {
            sums.push(label, probability);
        }
        // Pairs: 0.4>0.1, 0.4=0.4 (half), 0.9>0.1, 0.9>0.4.
        let score = sums.finish();
        assert_eq!(score.auc, 3.5 / 4.0);
        assert_eq!(score.accuracy, 0.75);
    }
}
