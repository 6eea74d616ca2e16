//! A finding: what is wrong, how bad, on which evidence, how sure, and what to do about it.
//! Diagnosis rules make them from a record, lint rules from source; everybody else only shows or applies them.

use crate::Message;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How much a finding matters. Ordered: the last is the worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know; nothing is lost.
    Information,
    /// Costs some speed, or may.
    Warning,
    /// Costs a large part of the speed, or the run.
    Critical,
}

/// Whether fixing it makes the run faster, or it is only a symptom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Cause,
    Symptom,
    /// "Nothing wrong", "too little data", "still warming up".
    Verdict,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// One measured fact that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// What was measured: "time waiting for batches".
    pub what: Message,
    pub value: f64,
    /// `%`, `ms`, `s`, `GB/s` … as shown behind the value.
    pub unit: String,
    /// The limit it was held against, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Seconds of the run that the value was taken over: start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<(f64, f64)>,
}

impl Evidence {
    pub fn new(what: Message, value: f64, unit: impl Into<String>) -> Self {
        Self {
            what,
            value,
            unit: unit.into(),
            threshold: None,
            window_s: None,
        }
    }

    #[must_use]
    pub fn against(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self
    }

    #[must_use]
    pub fn over(mut self, start_s: f64, end_s: f64) -> Self {
        self.window_s = Some((start_s, end_s));
        self
    }
}

/// A place in the user's own source or configuration. Lines and columns count from 1.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Place {
    pub file: PathBuf,
    /// The cell of a notebook, from 1; lines are then those of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
    pub line: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Place {
    pub fn new(file: impl Into<PathBuf>, line: u32) -> Self {
        Self {
            file: file.into(),
            cell: None,
            line,
            column: None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(cell) = self.cell {
            write!(f, "cell {cell}:")?;
        }
        write!(f, "{}", self.line)?;
        match self.column {
            Some(column) => write!(f, ":{column}"),
            None => Ok(()),
        }
    }
}

/// Replace the bytes `start..end` of a file by `text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Edit {
    pub file: PathBuf,
    pub start: usize,
    pub end: usize,
    pub text: String,
}

/// Something to do about a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Fix {
    /// A setting under the name `flatout run --apply` and `flatout tune` know it by.
    Setting {
        setting: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        to: String,
        say: Message,
    },
    /// A change of source that a person makes.
    Code {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        say: Message,
    },
    /// A change of source that flatout can make by itself. `safe`: results stay the same.
    Edits {
        edits: Vec<Edit>,
        safe: bool,
        say: Message,
    },
    /// A command to type.
    Command { command: String, say: Message },
    /// A change that was considered and cannot help, with the reason.
    Refused { setting: String, say: Message },
}

/// The gain to expect, as a factor on throughput: `1.25` is a quarter more samples a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gain {
    pub low: f64,
    pub high: f64,
    /// Measured by a second run, not estimated from the first.
    pub measured: bool,
}

impl Gain {
    pub fn estimate(low: f64, high: f64) -> Self {
        Self {
            low: low.min(high),
            high: high.max(low),
            measured: false,
        }
    }

    /// What removing a share of the time may gain: nothing at least, all of it at most.
    /// `certain_share` is the part that surely goes, `possible_share` the part that may.
    pub fn from_removed_shares(certain_share: f64, possible_share: f64) -> Self {
        let factor = |share: f64| 1.0 / (1.0 - share.clamp(0.0, 0.99));
        Self::estimate(factor(certain_share), factor(possible_share))
    }
}

/// A line that `flatout lint` reports as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Linted {
    /// The id of the lint rule: `file-reopened-in-getitem`.
    pub rule: String,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// The id of the rule: `loader-without-workers`.
    pub rule: String,
    pub severity: Severity,
    pub kind: Kind,
    pub confidence: Confidence,
    /// One line: what is wrong.
    pub title: Message,
    /// Two or three sentences: why that is slow here.
    #[serde(default, skip_serializing_if = "Message::is_empty")]
    pub detail: Message,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// What the lint knows of the lines that cost this time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lint: Vec<Linted>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

impl Finding {
    pub fn new(rule: &str, severity: Severity, title: Message) -> Self {
        Self {
            rule: rule.to_owned(),
            severity,
            kind: Kind::Cause,
            confidence: Confidence::High,
            title,
            detail: Message::default(),
            evidence: Vec::new(),
            places: Vec::new(),
            lint: Vec::new(),
            fixes: Vec::new(),
            gain: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_never_exceeds_what_the_time_allows() {
        let gain = Gain::from_removed_shares(0.25, 0.5);
        assert!((gain.low - 4.0 / 3.0).abs() < 1e-12 && (gain.high - 2.0).abs() < 1e-12);
        assert!(Gain::from_removed_shares(0.0, 7.0).high.is_finite());
    }

    #[test]
    fn findings_survive_json() {
        let mut finding = Finding::new(
            "loader-starved",
            Severity::Critical,
            crate::message!(en: "starved", zh: "数据不足"),
        );
        finding.evidence.push(
            Evidence::new(crate::message!(en: "wait", zh: "等待"), 61.0, "%")
                .against(10.0)
                .over(5.0, 35.0),
        );
        finding.places.push(Place::new("train.py", 12));
        finding.fixes.push(Fix::Setting {
            setting: "loader.num_workers".into(),
            from: Some("0".into()),
            to: "2".into(),
            say: crate::message!(en: "use 2 workers", zh: "使用 2 个 worker"),
        });
        let text = serde_json::to_string(&finding).unwrap();
        assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
    }
}
