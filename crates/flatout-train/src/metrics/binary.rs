//! Two classes: cross-entropy, accuracy, and the area under the ROC curve from a histogram of logits, so that the memory is the
//! same for a thousand samples and for a billion.

use super::Scores;

/// Bits of a logit that tell bins apart: sign, exponent and nine of the mantissa. Logits closer than 1 in 512 count as equal.
const BITS: u32 = 18;

pub struct BinaryMeter {
    loss: f64,
    right: u64,
    /// Predicted to be positive, and those of them that are.
    called: u64,
    hits: u64,
    /// Negatives and positives of each bin.
    bins: Vec<[u64; 2]>,
    samples: u64,
    /// A logit that is no number makes every score meaningless.
    broken: bool,
}

impl Default for BinaryMeter {
    fn default() -> Self {
        Self {
            loss: 0.0,
            right: 0,
            called: 0,
            hits: 0,
            bins: vec![[0; 2]; 1 << BITS],
            samples: 0,
            broken: false,
        }
    }
}

/// Rises with the value.
fn bin(logit: f32) -> usize {
    let bits = logit.to_bits();
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    (ordered >> (32 - BITS)) as usize
}

/// The harmonic mean; 0 where nothing was found, as scikit-learn has it.
pub fn f1(precision: f64, recall: f64) -> f64 {
    if precision + recall > 0.0 {
        2.0 * precision * recall / (precision + recall)
    } else {
        0.0
    }
}

impl BinaryMeter {
    pub fn add(&mut self, logit: f32, positive: bool) {
        self.samples += 1;
        self.broken |= logit.is_nan();
        let towards = f64::from(if positive { logit } else { -logit });
        // ln(1 + e^−x) without an overflow.
        self.loss += (-towards).max(0.0) + (-towards.abs()).exp().ln_1p();
        self.right += u64::from((logit > 0.0) == positive);
        self.called += u64::from(logit > 0.0);
        self.hits += u64::from(logit > 0.0 && positive);
        self.bins[bin(logit)][usize::from(positive)] += 1;
    }

    pub fn scores(&self) -> Option<Scores> {
        if self.samples == 0 {
            return None;
        }
        let count = self.samples as f64;
        let meaningful = |value: f64| Some(value).filter(|_| !self.broken);
        Some(Scores {
            loss: if self.broken { f64::NAN } else { self.loss / count },
            accuracy: meaningful(self.right as f64 / count),
            auc: self.area().filter(|_| !self.broken),
            precision: meaningful(self.precision()),
            recall: meaningful(self.recall()),
            f1: meaningful(f1(self.precision(), self.recall())),
            samples: self.samples,
            ..Scores::default()
        })
    }

    /// Rows: no and yes as they are; columns: as predicted.
    pub fn confusion(&self) -> Vec<Vec<u64>> {
        let positives: u64 = self.bins.iter().map(|[_, positive]| positive).sum();
        let wrong = self.called - self.hits;
        vec![
            vec![self.samples - positives - wrong, wrong],
            vec![positives - self.hits, self.hits],
        ]
    }

    fn precision(&self) -> f64 {
        self.hits as f64 / self.called.max(1) as f64
    }

    fn recall(&self) -> f64 {
        let positives: u64 = self.bins.iter().map(|[_, positive]| positive).sum();
        self.hits as f64 / positives.max(1) as f64
    }

    /// Share of the pairs of a positive and a negative that are in order; equal ones count half. `None` with one class only.
    fn area(&self) -> Option<f64> {
        let (mut below, mut ordered, mut positives) = (0.0f64, 0.0f64, 0.0f64);
        for &[negative, positive] in &self.bins {
            let (negative, positive) = (negative as f64, positive as f64);
            ordered += positive * (below + negative / 2.0);
            below += negative;
            positives += positive;
        }
        let pairs = positives * below;
        (pairs > 0.0).then(|| ordered / pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scores() {
        let mut meter = BinaryMeter::default();
        assert!(meter.scores().is_none());
        for (logit, positive) in [(0.9, true), (0.4, true), (0.4, false), (-0.1, false)] {
            meter.add(logit, positive);
        }
        let scores = meter.scores().unwrap();
        // Of the four pairs three are in order, one is a tie.
        assert_eq!(scores.auc, Some(3.5 / 4.0));
        assert_eq!(scores.accuracy, Some(0.75));
        // sklearn.metrics.precision_recall_fscore_support([1, 1, 0, 0], [1, 1, 1, 0], average="binary")
        assert_eq!((scores.precision, scores.recall), (Some(2.0 / 3.0), Some(1.0)));
        assert!((scores.f1.unwrap() - 0.8).abs() < 1e-12);
        // sklearn.metrics.confusion_matrix
        assert_eq!(meter.confusion(), [[1, 1], [0, 2]]);
        // torch.nn.functional.binary_cross_entropy_with_logits
        assert!((scores.loss - 0.602_895_259_9).abs() < 1e-6, "{}", scores.loss);
    }

    #[test]
    fn the_area_is_that_of_the_ranks() {
        let mut meter = BinaryMeter::default();
        let mut pairs = Vec::new();
        for index in 0..4000u64 {
            let random = |salt: u64| {
                ((index * 2 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1u64 << 24) as f32
            };
            let (logit, positive) = (random(0) * 8.0 - 4.0, random(1) < 0.3 + 0.4 * random(0));
            meter.add(logit, positive);
            pairs.push((logit, positive));
        }
        let mut ordered = 0.0;
        let (positives, negatives): (Vec<_>, Vec<_>) = pairs.iter().partition(|(_, positive)| *positive);
        for (one, _) in &positives {
            for (other, _) in &negatives {
                ordered += if one > other { 1.0 } else { 0.0 };
            }
        }
        let exact = ordered / (positives.len() * negatives.len()) as f64;
        let found = meter.scores().unwrap().auc.unwrap();
        assert!((found - exact).abs() < 1e-4, "{found} against {exact}");
    }

    #[test]
    fn extremes_have_finite_losses_and_one_class_no_area() {
        let mut meter = BinaryMeter::default();
        meter.add(-1e30, true);
        meter.add(1e30, true);
        let scores = meter.scores().unwrap();
        assert!(scores.loss.is_finite() && scores.auc.is_none());
        meter.add(f32::NAN, false);
        assert!(meter.scores().unwrap().loss.is_nan());
    }
}
