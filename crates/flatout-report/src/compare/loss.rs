//! Faster is worth nothing if it learns less: the loss of each run after the same number of samples.

use crate::digest::{Digest, LossPoint};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtEqualSamples {
    /// The most samples that every run has seen.
    pub samples: f64,
    /// The mean over the samples of what was read in the last tenth before it; `None` where nothing was read by then.
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
    let mut seen = 0.0;
    let (mut sum, mut weight) = (0.0, 0.0);
    for point in points.iter().take_while(|point| point.samples <= samples) {
        if point.samples > samples * 0.9 {
            // A reading counts by its samples: the last one may be of a single step.
            sum += point.loss * (point.samples - seen);
            weight += point.samples - seen;
        }
        seen = point.samples;
    }
    if weight > 0.0 {
        return Some(sum / weight);
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

    #[test]
    fn a_last_reading_of_one_step_hardly_counts() {
        let point = |samples, loss| LossPoint { samples, loss };
        let points = [point(800.0, 9.0), point(996.0, 0.5), point(1000.0, 50.5)];
        assert_eq!(at(&points, 1000.0), Some(1.5));
    }
}
