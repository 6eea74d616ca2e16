//! The guard: a knob that changes numbers must not hurt the training. The loss over equal samples is held against the baseline's.

use crate::trial::Measurement;
use flatout_core::stats::{deviation, mean};
use flatout_core::{Message, message};
use serde::{Deserialize, Serialize};

/// How far above the baseline's a loss may lie beside the noise, as a share of the baseline's.
const TOLERANCE: f64 = 0.05;
/// Fewer losses than this on either side say nothing.
const LEAST: usize = 4;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Guarded {
    /// As good as the baseline's, within the noise.
    Good {
        loss: f64,
        baseline: f64,
    },
    /// Fewer updates for the same samples: behind the baseline, but going the right way.
    Behind {
        loss: f64,
        baseline: f64,
    },
    Hurts {
        why: Message,
    },
    /// The program's losses could not be seen.
    Unknown,
}

/// Losses that both runs saw over the same samples.
struct CommonLosses {
    baseline: Vec<f64>,
    trial: Vec<f64>,
}

/// Compares over the samples that both have seen. `updates`: how many times fewer optimizer steps the trial makes for them;
/// above 1 it may lag behind, as long as it gets better.
pub fn guard(baseline: &Measurement, trial: &Measurement, updates: f64) -> Guarded {
    if trial.losses.iter().any(|(_, loss)| loss.is_none()) {
        let sound = baseline.losses.iter().all(|(_, loss)| loss.is_some());
        if sound {
            return Guarded::Hurts {
                why: message!(en: "the loss became infinite or NaN; with the baseline it did not", zh: "loss 变为无穷大或 NaN，而基线没有"),
            };
        }
    }
    let Some(common) = common_losses(baseline, trial) else {
        return Guarded::Unknown;
    };
    // The latter half: where the training has got to, with enough values to average.
    let late = |values: &[f64]| mean(&values[values.len() / 2..]);
    let (base, loss) = (late(&common.baseline), late(&common.trial));
    let noise = error_of(&common.baseline) + error_of(&common.trial);
    if loss <= base + TOLERANCE * base.abs() + 2.0 * noise {
        return Guarded::Good { loss, baseline: base };
    }
    let began = mean(&common.baseline[..(common.baseline.len() / 4).max(1)]);
    if updates > 1.0 && loss <= began + TOLERANCE * began.abs() + 2.0 * noise {
        return Guarded::Behind { loss, baseline: base };
    }
    Guarded::Hurts {
        why: message!(
            en: "after the same number of samples the loss is {loss:.4}, with the baseline {base:.4}",
            zh: "样本数相同时 loss 为 {loss:.4}，基线为 {base:.4}"
        ),
    }
}

fn common_losses(baseline: &Measurement, trial: &Measurement) -> Option<CommonLosses> {
    let last = |measurement: &Measurement| measurement.losses.last().map(|(samples, _)| *samples);
    let equal = last(baseline)?.min(last(trial)?);
    let finite =
        |losses: &[(u64, Option<f64>)]| -> Vec<f64> { losses.iter().filter_map(|(_, loss)| *loss).collect() };
    let within = |measurement: &Measurement| {
        let seen = measurement
            .losses
            .iter()
            .filter(|(samples, _)| *samples <= equal)
            .count();
        // A batch so large that hardly any step fits: its first ones, which favours it.
        finite(&measurement.losses[..seen.max(LEAST).min(measurement.losses.len())])
    };
    let common = CommonLosses {
        baseline: within(baseline),
        trial: within(trial),
    };
    (common.baseline.len() >= LEAST && common.trial.len() >= LEAST).then_some(common)
}

/// The standard error of the latter half's mean.
fn error_of(values: &[f64]) -> f64 {
    let late = &values[values.len() / 2..];
    deviation(late, mean(late)) / (late.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(batch: u64, loss: impl Fn(u64) -> Option<f64>) -> Measurement {
        let losses = (1..=40).map(|step| (step * batch, loss(step))).collect();
        Measurement {
            losses,
            ..Measurement::default()
        }
    }

    fn falling(step: u64) -> Option<f64> {
        Some(2.0 / (1.0 + step as f64 / 10.0))
    }

    #[test]
    fn the_same_loss_is_good_and_a_worse_one_hurts() {
        let baseline = run(32, falling);
        assert!(matches!(
            guard(&baseline, &run(32, falling), 1.0),
            Guarded::Good { .. }
        ));
        let worse = run(32, |step| falling(step).map(|loss| loss * 1.5));
        assert!(matches!(guard(&baseline, &worse, 1.0), Guarded::Hurts { .. }));
        let broken = run(32, |step| (step < 20).then_some(1.0));
        assert!(matches!(guard(&baseline, &broken, 1.0), Guarded::Hurts { .. }));
    }

    #[test]
    fn a_larger_batch_may_lag_but_not_go_backwards() {
        let baseline = run(32, falling);
        assert!(matches!(
            guard(&baseline, &run(256, falling), 8.0),
            Guarded::Behind { .. }
        ));
        let diverging = run(256, |step| Some(2.0 + step as f64));
        assert!(matches!(guard(&baseline, &diverging, 8.0), Guarded::Hurts { .. }));
    }

    #[test]
    fn without_losses_there_is_no_verdict() {
        assert_eq!(
            guard(&run(32, falling), &Measurement::default(), 1.0),
            Guarded::Unknown
        );
    }
}
