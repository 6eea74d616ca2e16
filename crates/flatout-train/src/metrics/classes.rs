//! Several classes: cross-entropy, accuracy, and the mean F1 over the classes.

use super::Scores;
use super::binary::f1;
use super::report::MOST_CLASSES;

#[derive(Default)]
pub struct ClassMeter {
    loss: f64,
    right: u64,
    among_five: u64,
    samples: u64,
    /// Of each class: samples, predictions, predictions that are right.
    counts: Vec<[u64; 3]>,
    /// Samples of each class that were taken for each, where there are not too many classes.
    confusion: Vec<Vec<u64>>,
}

impl ClassMeter {
    pub fn add(&mut self, logits: &[f32], class: i32) {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
        let Some(&own) = logits.get(class as usize) else {
            return;
        };
        self.samples += 1;
        self.loss += sum.ln() - f64::from(own - largest);
        let (class, found) = (class as usize, best(logits));
        self.right += u64::from(found == class);
        self.among_five += u64::from(logits.iter().filter(|logit| **logit > own).count() < 5);
        self.counts.resize(self.counts.len().max(logits.len()), [0; 3]);
        if self.confusion.is_empty() && logits.len() <= MOST_CLASSES {
            self.confusion = vec![vec![0; logits.len()]; logits.len()];
        }
        if let Some(taken) = self.confusion.get_mut(class).and_then(|row| row.get_mut(found)) {
            *taken += 1;
        }
        self.counts[class][0] += 1;
        self.counts[found][1] += 1;
        self.counts[found][2] += u64::from(found == class);
    }

    pub fn scores(&self) -> Option<Scores> {
        let count = self.samples as f64;
        (self.samples > 0).then(|| Scores {
            loss: self.loss / count,
            accuracy: Some(self.right as f64 / count),
            top5_accuracy: (self.counts.len() > 5).then(|| self.among_five as f64 / count),
            f1: self.mean_f1(),
            samples: self.samples,
            ..Scores::default()
        })
    }
}

impl ClassMeter {
    /// Rows: classes as they are; columns: as predicted.
    pub fn confusion(&self) -> Vec<Vec<u64>> {
        self.confusion.clone()
    }

    /// Over the classes that are there or were predicted, as scikit-learn's `average="macro"`.
    fn mean_f1(&self) -> Option<f64> {
        let seen = self
            .counts
            .iter()
            .filter(|[samples, called, _]| samples + called > 0);
        let each: Vec<f64> = seen
            .map(|[samples, called, hits]| {
                let share = |of: &u64| *hits as f64 / (*of).max(1) as f64;
                f1(share(called), share(samples))
            })
            .collect();
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    }
}

/// The first of the largest.
pub fn best(logits: &[f32]) -> usize {
    let mut best = 0;
    for (index, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scores() {
        let mut meter = ClassMeter::default();
        assert!(meter.scores().is_none());
        meter.add(&[1.0, 2.0, 0.5], 1);
        meter.add(&[1000.0, 0.0, 0.0], 2);
        let scores = meter.scores().unwrap();
        assert_eq!((scores.accuracy, scores.samples), (Some(0.5), 2));
        // sklearn.metrics.f1_score([1, 2], [1, 0], average="macro")
        assert!((scores.f1.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(scores.top5_accuracy, None);
        assert_eq!(meter.confusion(), [[0, 0, 0], [0, 1, 0], [1, 0, 0]]);
        // torch.nn.functional.cross_entropy
        assert!(
            (scores.loss - (0.464_368_784_1 + 1000.0) / 2.0).abs() < 1e-4,
            "{}",
            scores.loss
        );
    }
}
