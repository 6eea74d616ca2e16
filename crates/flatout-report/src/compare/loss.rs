//! Faster is worth nothing if it learns less: the loss of each run after the same number of samples.

use crate::digest::{Digest, LossPoint};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtEqualSamples {
    /// The most samples that every run has seen.
    pub samples: f64,
    /// The mean of what was read in the last tenth before it; `None` where nothing was read by then.
    pub losses: Vec<Option<f64>>,
}

pub fn at_equal_samples(digests: &[Digest]) -> Option<AtEqualSamples> {
    let seen = digests
        .iter()
        .map(|digest| digest.learning.last().map(|point| point.samples));
    let samples = seen.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
    let losses: Vec<Option<f64>> = digests
        .iter()
        .map(|digest| at(&digest.learning, samples))
        .collect();
    losses
        .iter()
        .any(Option::is_some)
        .then_some(AtEqualSamples { samples, losses })
}

fn at(points: &[LossPoint], samples: f64) -> Option<f64> {
    let near: Vec<f64> = points
        .iter()
        .filter(|point| point.samples > samples * 0.9 && point.samples <= samples)
        .map(|point| point.loss)
        .collect();
    if !near.is_empty() {
        return Some(flatout_core::stats::mean(&near));
    }
    // Between two readings, linearly; before the first one nothing is known.
    let after = points.iter().position(|point| point.samples > samples)?;
    let (before, after) = (points.get(after.checked_sub(1)?)?, points[after]);
    let share = (samples - before.samples) / (after.samples - before.samples);
    Some(before.loss + (after.loss - before.loss) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_readings_and_before_the_first() {
        let points = [
            LossPoint {
                samples: 100.0,
                loss: 4.0,
            },
            LossPoint {
                samples: 200.0,
                loss: 2.0,
            },
        ];
        assert_eq!(at(&points, 200.0), Some(2.0));
        assert_eq!(at(&points, 150.0), Some(3.0));
        assert_eq!(at(&points, 50.0), None);
        assert_eq!(at(&[], 50.0), None);
    }
}
