//! One figure of two runs: the factor, its interval, and what that means.

use crate::digest::figures::{Figure, Unit};
use flatout_core::{Message, message};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Better,
    Worse,
    /// It changed, and neither way is better.
    Changed,
    /// No difference beyond noise.
    Noise,
    /// One of the runs has no interval: whether it changed cannot be told.
    Untold,
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
    pub fn between(first: &Figure, second: &Figure) -> Self {
        let difference = second.mean - first.mean;
        let half = |figure: &Figure| figure.interval.map(|(low, high)| (high - low) / 2.0);
        let halves = half(first).zip(half(second));
        let difference_interval = halves.map(|(a, b)| {
            let both = a.hypot(b);
            (difference - both, difference + both)
        });
        let outcome = match difference_interval {
            None => Outcome::Untold,
            Some((low, high)) if low <= 0.0 && high >= 0.0 => Outcome::Noise,
            Some(_) => match first.higher_is_better {
                None => Outcome::Changed,
                Some(higher) if (difference > 0.0) == higher => Outcome::Better,
                Some(_) => Outcome::Worse,
            },
        };
        let factor = (first.mean > 0.0).then(|| second.mean / first.mean);
        let factor_interval = factor.zip(halves).and_then(|(factor, (a, b))| {
            // Relative errors of a quotient add up squared; on the logarithm the interval stays above 0.
            let relative = (a / first.mean).hypot(b / second.mean);
            (relative.is_finite() && factor > 0.0)
                .then(|| (factor * (-relative).exp(), factor * relative.exp()))
        });
        Self {
            factor,
            factor_interval,
            difference,
            difference_interval,
            outcome,
        }
    }

    /// `4.9×`, `+3.2%`, `+41 points`.
    pub fn show(&self, unit: Unit) -> String {
        if unit == Unit::Share {
            return format!("{:+.1} pp", self.difference * 100.0);
        }
        self.factor.map_or_else(
            || {
                let sign = if self.difference < 0.0 { "−" } else { "+" };
                format!("{sign}{}", unit.show(self.difference.abs()))
            },
            |factor| shown(factor, is_small(factor)),
        )
    }

    /// In the form of the change itself, percent or factor.
    pub fn show_interval(&self, unit: Unit) -> Option<String> {
        if unit == Unit::Share {
            let (low, high) = self.difference_interval?;
            return Some(format!("{:+.1} – {:+.1}", low * 100.0, high * 100.0));
        }
        let (low, high) = self.factor_interval?;
        let percent = self.factor.is_some_and(is_small);
        Some(format!("{} – {}", shown(low, percent), shown(high, percent)))
    }
}

/// Small changes are told in percent, large ones as a factor.
fn is_small(factor: f64) -> bool {
    (0.5..2.0).contains(&factor)
}

fn shown(factor: f64, percent: bool) -> String {
    if percent {
        format!("{:+.1}%", (factor - 1.0) * 100.0)
    } else if factor >= 100.0 {
        format!("{factor:.0}×")
    } else {
        format!("{factor:.2}×")
    }
}

impl Outcome {
    /// It changed, but whether that is good the figure cannot say.
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

    fn figure(mean: f64, half: Option<f64>) -> Figure {
        Figure {
            key: "samples_per_s",
            name: Message::verbatim("x"),
            unit: Unit::PerSecond,
            mean,
            interval: half.map(|half| (mean - half, mean + half)),
            std: None,
            higher_is_better: Some(true),
        }
    }

    #[test]
    fn noise_is_said_to_be_noise() {
        let of = |a, b| Change::between(&a, &b).outcome;
        assert_eq!(
            of(figure(100.0, Some(5.0)), figure(103.0, Some(5.0))),
            Outcome::Noise
        );
        assert_eq!(
            of(figure(100.0, Some(1.0)), figure(103.0, Some(1.0))),
            Outcome::Better
        );
        assert_eq!(
            of(figure(103.0, Some(1.0)), figure(100.0, Some(1.0))),
            Outcome::Worse
        );
        assert_eq!(of(figure(100.0, None), figure(900.0, Some(1.0))), Outcome::Untold);
    }

    #[test]
    fn factors_and_percents() {
        let change = Change::between(&figure(100.0, Some(1.0)), &figure(490.0, Some(10.0)));
        assert_eq!(change.show(Unit::PerSecond), "4.90×");
        let (low, high) = change.factor_interval.unwrap();
        assert!(low < 4.9 && high > 4.9 && high - low < 0.3);
        // Both ends as the change, though one of them alone would be a factor.
        let halved = Change::between(&figure(100.0, Some(2.0)), &figure(52.0, Some(5.0)));
        assert!(halved.factor_interval.unwrap().0 < 0.5);
        let interval = halved.show_interval(Unit::PerSecond).unwrap();
        assert!(!interval.contains('×'), "{interval}");
        assert_eq!(
            Change::between(&figure(100.0, None), &figure(97.0, None)).show(Unit::PerSecond),
            "-3.0%"
        );
        assert_eq!(
            Change::between(&figure(0.0, None), &figure(0.004, None)).show(Unit::Seconds),
            "+4 ms"
        );
    }
}
