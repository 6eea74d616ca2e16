//! How often each class was taken for each, and what follows for every class: a classification report.

use super::binary::f1;
use serde::{Deserialize, Serialize};

/// More classes than this have no matrix: it would be larger than the predictions.
pub(super) const MOST_CLASSES: usize = 1000;

/// One class against all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassScores {
    pub class: String,
    pub samples: u64,
    /// Predictions of this class.
    pub predicted: u64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
}

/// The classes of a label, and the confusion matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    pub classes: Vec<ClassScores>,
    /// A row for each class as it is, a column for each as it was predicted.
    pub confusion: Vec<Vec<u64>>,
}

impl ClassReport {
    /// `None` without names for all classes.
    pub(super) fn of(names: &[String], confusion: Vec<Vec<u64>>) -> Option<Self> {
        if names.len() != confusion.len() {
            return None;
        }
        let predicted = |class: usize| confusion.iter().filter_map(|row| row.get(class)).sum::<u64>();
        let classes = names
            .iter()
            .zip(&confusion)
            .enumerate()
            .map(|(number, (name, row))| {
                let hits = row.get(number).copied().unwrap_or(0);
                let (samples, predicted) = (row.iter().sum::<u64>(), predicted(number));
                // 0 where there is nothing to divide by, as scikit-learn has it.
                let (precision, recall) = (
                    hits as f64 / predicted.max(1) as f64,
                    hits as f64 / samples.max(1) as f64,
                );
                ClassScores {
                    class: name.clone(),
                    samples,
                    predicted,
                    precision,
                    recall,
                    f1: f1(precision, recall),
                }
            });
        Some(Self {
            classes: classes.collect(),
            confusion,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_that_of_scikit_learn() {
        // confusion_matrix and classification_report of y = [0, 0, 1, 1, 1, 2], predicted = [0, 1, 1, 1, 0, 1]
        let names = ["a", "b", "c"].map(str::to_owned);
        let matrix = vec![vec![1, 1, 0], vec![1, 2, 0], vec![0, 1, 0]];
        let report = ClassReport::of(&names, matrix).unwrap();
        let figures: Vec<_> = report
            .classes
            .iter()
            .map(|class| (class.samples, class.predicted, class.precision, class.recall))
            .collect();
        assert_eq!(
            figures,
            [(2, 2, 0.5, 0.5), (3, 4, 0.5, 2.0 / 3.0), (1, 0, 0.0, 0.0)]
        );
        assert!((report.classes[1].f1 - 4.0 / 7.0).abs() < 1e-12);
        assert_eq!(ClassReport::of(&names[..2], vec![vec![0; 3]; 3]), None);
    }
}
