//! `slower=3%` and `faster=25%`: what CI asks of a comparison.

use crate::Ratio;
use flatout_core::{Explain, Message, explained, message};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The share of throughput that may be lost.
    Slower(f64),
    /// The share that must be gained.
    Faster(f64),
}

#[derive(Debug)]
pub enum LimitError {
    Unknown {
        text: String,
        example: &'static str,
    },
    /// No run-wide rate to hold against the limit.
    NoRate,
    /// A rate is that of one rank.
    OtherRanks,
}

impl Explain for LimitError {
    fn message(&self) -> Message {
        match self {
            Self::Unknown { text, .. } => {
                message!(en: "`{text}` is not a valid limit", zh: "`{text}` 不是有效的条件")
            }
            Self::NoRate => message!(
                en: "the limit cannot be checked: not every run has a measured rate",
                zh: "无法按条件检查：并非所有运行都测得了速率"
            ),
            Self::OtherRanks => message!(
                en: "the limit cannot be checked: the runs have different numbers of ranks, and rates are those of one rank",
                zh: "无法按条件检查：各次运行的 rank 数不同，而速率是单个 rank 的"
            ),
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Unknown { example, .. } => message!(en: "write {example}", zh: "请写成 {example}"),
            Self::NoRate => {
                message!(en: "compare runs with at least 10 steady steps", zh: "请比较至少有十个稳定步的运行")
            }
            Self::OtherRanks => {
                message!(en: "compare runs with the same number of ranks", zh: "请比较 rank 数相同的运行")
            }
        })
    }
}
explained!(LimitError);

impl Limit {
    /// `slower=3%` or `slower=0.03`.
    pub fn slower(text: &str) -> Result<Self, LimitError> {
        let share = share(text, "slower=", "--fail-if slower=3%")?;
        if share < 1.0 {
            Ok(Self::Slower(share))
        } else {
            Err(LimitError::Unknown {
                text: text.to_owned(),
                example: "--fail-if slower=3%",
            })
        }
    }

    /// `faster=25%`; 300% is four times as fast.
    pub fn faster(text: &str) -> Result<Self, LimitError> {
        share(text, "faster=", "--fail-unless faster=25%").map(Self::Faster)
    }

    /// Whether a run breaks it. What has no interval can lose beyond the limit, but cannot be shown to gain.
    pub fn is_broken_by(self, ratio: &Ratio) -> bool {
        match self {
            Self::Slower(share) => match ratio.interval {
                Some(_) => ratio.is_slower_by(share),
                None => 1.0 - ratio.factor > share,
            },
            Self::Faster(share) => !ratio.is_faster_by(1.0 + share),
        }
    }
}

fn share(text: &str, name: &str, example: &'static str) -> Result<f64, LimitError> {
    let unknown = || LimitError::Unknown {
        text: text.to_owned(),
        example,
    };
    let value = text.trim().strip_prefix(name).ok_or_else(unknown)?;
    let (number, scale) = match value.strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (value, 1.0),
    };
    let share = number.trim().parse::<f64>().map_err(|_| unknown())? * scale;
    if share.is_finite() && share >= 0.0 {
        Ok(share)
    } else {
        Err(unknown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(Limit::slower("slower=3%").unwrap(), Limit::Slower(0.03));
        assert_eq!(Limit::slower("slower=0.1").unwrap(), Limit::Slower(0.1));
        assert_eq!(Limit::faster("faster=300%").unwrap(), Limit::Faster(3.0));
        for wrong in [
            "slower",
            "faster=3%",
            "slower=x",
            "slower=-1%",
            "slower=200%",
            "slower=nan",
        ] {
            assert!(Limit::slower(wrong).is_err(), "{wrong}");
        }
        for wrong in ["slower=3%", "faster=-1%", "faster=inf", "25%"] {
            assert!(Limit::faster(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_gain_must_be_shown() {
        let ratio = |factor: f64, relative: f64| Ratio {
            factor,
            interval: Some((factor * (1.0 - relative), factor * (1.0 + relative))),
        };
        let quarter = Limit::Faster(0.25);
        assert!(!quarter.is_broken_by(&ratio(1.3, 0.02)) && quarter.is_broken_by(&ratio(1.2, 0.02)));
        assert!(
            quarter.is_broken_by(&ratio(1.3, 0.5)),
            "the interval contains 1: noise"
        );
        let bare = Ratio {
            factor: 9.0,
            interval: None,
        };
        assert!(quarter.is_broken_by(&bare));
    }
}
