//! Several classes: cross-entropy and accuracy.

use super::Scores;

#[derive(Default)]
pub struct ClassMeter {
    loss: f64,
    right: u64,
    samples: u64,
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
        self.right += u64::from(best(logits) == class as usize);
    }

    pub fn scores(&self) -> Option<Scores> {
        let count = self.samples as f64;
        (self.samples > 0).then(|| Scores {
            loss: self.loss / count,
            accuracy: Some(self.right as f64 / count),
            samples: self.samples,
            ..Scores::default()
        })
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
        // torch.nn.functional.cross_entropy
        assert!(
            (scores.loss - (0.464_368_784_1 + 1000.0) / 2.0).abs() < 1e-4,
            "{}",
            scores.loss
        );
    }
}
