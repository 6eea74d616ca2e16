//! `--fail-if slower=3%`: a check for CI.

use super::Comparison;
use super::change::{Change, Outcome};
use flatout_core::{Explain, Message, explained, message};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The share of throughput that may be lost.
    pub slower: f64,
}

#[derive(Debug)]
pub enum LimitError {
    Unknown {
        text: String,
    },
    /// No run-wide rate to hold against the limit.
    NoRate,
}

impl Explain for LimitError {
    fn message(&self) -> Message {
        match self {
            Self::Unknown { text } => message!(en: "`{text}` is no limit", zh: "`{text}` 不是有效的条件"),
            Self::NoRate => message!(
                en: "the runs cannot be held against a limit: not all of them have a measured rate",
                zh: "无法按条件检查：并非所有运行都测得了速率"
            ),
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Unknown { .. } => {
                message!(en: "write --fail-if slower=3%", zh: "请写成 --fail-if slower=3%")
            }
            Self::NoRate => {
                message!(en: "compare runs of at least ten steady steps", zh: "请比较至少有十个稳定步的运行")
            }
        })
    }
}
explained!(LimitError);

impl Limit {
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let unknown = || LimitError::Unknown {
            text: text.to_owned(),
        };
        let value = text.trim().strip_prefix("slower=").ok_or_else(unknown)?;
        let (number, scale) = match value.strip_suffix('%') {
            Some(percent) => (percent, 0.01),
            None => (value, 1.0),
        };
        let slower = number.trim().parse::<f64>().map_err(|_| unknown())? * scale;
        if (0.0..1.0).contains(&slower) {
            Ok(Self { slower })
        } else {
            Err(unknown())
        }
    }

    /// The runs that lost more than allowed, beyond noise: letter and what it lost.
    pub fn broken_by(self, comparison: &Comparison) -> Result<Vec<(String, Change)>, LimitError> {
        let measured = |key| {
            comparison
                .figure(key)
                .filter(|row| row.values.iter().all(Option::is_some))
        };
        let row = measured("samples_per_s")
            .or_else(|| measured("steps_per_s"))
            .ok_or(LimitError::NoRate)?;
        let broken = row
            .changes
            .iter()
            .zip(&comparison.runs)
            .filter_map(|(change, run)| {
                let change = (*change)?;
                let lost = 1.0 - change.factor?;
                let sure = matches!(change.outcome, Outcome::Worse | Outcome::Untold);
                (lost > self.slower && sure).then(|| (run.letter.clone(), change))
            });
        Ok(broken.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(Limit::parse("slower=3%").unwrap().slower, 0.03);
        assert_eq!(Limit::parse("slower=0.1").unwrap().slower, 0.1);
        for wrong in [
            "slower",
            "faster=3%",
            "slower=x",
            "slower=-1%",
            "slower=200%",
            "slower=nan",
        ] {
            assert!(Limit::parse(wrong).is_err(), "{wrong}");
        }
    }
}
