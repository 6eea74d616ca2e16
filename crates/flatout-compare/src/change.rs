//! One figure of two runs: the factor, its interval, and what that means.

use crate::{Estimate, Ratio};
use flatout_core::{Message, message};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Better,
    Worse,
    /// It changed, and neither direction is better.
    Changed,
    /// No difference beyond noise.
    Noise,
    /// One of the runs has no interval: whether it changed is unknown.
    Untold,
}

/// What two values of a figure are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Rates and times.
    Ratio,
    /// Shares between 0 and 1.
    Difference,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Second by first; absent where the first is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// 95% interval of the factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor_interval: Option<(f64, f64)>,
    /// Second less first, in the figure's unit.
    pub difference: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_interval: Option<(f64, f64)>,
    pub outcome: Outcome,
}

impl Change {
    /// `higher_is_better`: `None` where neither is.
    pub fn between(first: Estimate, second: Estimate, scale: Scale, higher_is_better: Option<bool>) -> Self {
        let difference = second.mean - first.mean;
        let difference_interval = first.half().zip(second.half()).map(|(a, b)| {
            let both = a.hypot(b);
            (difference - both, difference + both)
        });
        let ratio = Ratio::between(first, second);
        let factor_interval = ratio.and_then(|ratio| ratio.interval);
        // Of 0 there is no ratio.
        let (interval, same) = match factor_interval.filter(|_| scale == Scale::Ratio) {
            Some(interval) => (Some(interval), 1.0),
            None => (difference_interval, 0.0),
        };
        let outcome = match interval {
            None => Outcome::Untold,
            Some((low, high)) if low <= same && high >= same => Outcome::Noise,
            Some(_) => match higher_is_better {
                None => Outcome::Changed,
                Some(higher) if (difference > 0.0) == higher => Outcome::Better,
                Some(_) => Outcome::Worse,
            },
        };
        Self {
            factor: ratio.map(|ratio| ratio.factor),
            factor_interval,
            difference,
            difference_interval,
            outcome,
        }
    }

    /// As the ratio of two rates.
    pub fn ratio(&self) -> Option<Ratio> {
        Some(Ratio {
            factor: self.factor?,
            interval: self.factor_interval,
        })
    }
}

impl Outcome {
    /// It changed; the figure does not show whether that is good.
    #[must_use]
    pub fn without_judgement(self) -> Self {
        match self {
            Self::Better | Self::Worse => Self::Changed,
            other => other,
        }
    }

    pub fn name(self) -> Message {
        match self {
            Self::Better => message!(en: "better", zh: "变好"),
            Self::Worse => message!(en: "worse", zh: "变差"),
            Self::Changed => message!(en: "changed", zh: "有变化"),
            Self::Noise => message!(en: "no difference beyond noise", zh: "差异未超出噪声"),
            Self::Untold => message!(en: "noise unknown", zh: "噪声未知"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: Option<f64>) -> Estimate {
        Estimate {
            mean,
            interval: half.map(|half| (mean - half, mean + half)),
        }
    }

    #[test]
    fn reports_noise_as_noise() {
        let of = |a, b| Change::between(a, b, Scale::Ratio, Some(true)).outcome;
        let with = |mean, half| estimate(mean, Some(half));
        assert_eq!(of(with(100.0, 5.0), with(103.0, 5.0)), Outcome::Noise);
        assert_eq!(of(with(100.0, 1.0), with(103.0, 1.0)), Outcome::Better);
        assert_eq!(of(with(103.0, 1.0), with(100.0, 1.0)), Outcome::Worse);
        assert_eq!(of(estimate(100.0, None), with(900.0, 1.0)), Outcome::Untold);
    }

    #[test]
    fn shares_and_what_began_at_nothing_by_their_difference() {
        let shares = |a, b| {
            Change::between(
                estimate(a, Some(0.01)),
                estimate(b, Some(0.01)),
                Scale::Difference,
                Some(true),
            )
        };
        assert_eq!(shares(0.5, 0.505).outcome, Outcome::Noise);
        assert_eq!(shares(0.0, 0.4).outcome, Outcome::Better);
        let wait = Change::between(
            estimate(0.0, Some(0.0)),
            estimate(4.0, Some(1.0)),
            Scale::Ratio,
            Some(false),
        );
        assert_eq!((wait.outcome, wait.factor), (Outcome::Worse, None));
    }
}
