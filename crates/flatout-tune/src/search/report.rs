//! What a search found: a row a trial, and the result.

use crate::trial::{Measurement, Outcome, Rate, Settings};
use flatout_compare::Ratio;
use flatout_core::{Finding, Fix, Kind, Message, Severity, message, text};
use flatout_vocabulary::settings;
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    Start,
    Kept {
        gain: f64,
    },
    /// A smaller batch that is as good.
    Smaller,
    Refused {
        why: Message,
    },
    OutOfMemory {
        message: String,
    },
    /// The same again, to learn the noise.
    Repeated,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub number: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
    pub settings: Settings,
    /// What was changed against the best so far.
    pub changes: Settings,
    #[serde(skip_serializing_if = "Message::is_empty")]
    pub why: Message,
    /// The factor that was expected, and the one that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Rate>,
    #[serde(flatten)]
    pub verdict: Verdict,
    #[serde(skip)]
    pub measured: Option<Measurement>,
}

impl Row {
    pub(super) fn new(settings: &Settings, changes: &Settings, verdict: Verdict) -> Self {
        Self {
            number: 0,
            knob: None,
            settings: settings.clone(),
            changes: changes.clone(),
            why: Message::default(),
            predicted: None,
            gain: None,
            score: None,
            verdict,
            measured: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Found {
    pub rows: Vec<Row>,
    pub changed: bool,
    /// As the user has it.
    pub start: Settings,
    /// What the search began with, where the program as it is runs out of memory.
    pub mended: Option<Settings>,
    pub start_score: Rate,
    pub settings: Settings,
    pub measured: Measurement,
    pub score: Rate,
    /// What the best run still suffers from.
    pub findings: Vec<Finding>,
    pub interrupted: bool,
    pub seconds: f64,
}

impl Found {
    /// The factor on the objective, with its interval: what `flatout compare` would say of both.
    pub fn gain(&self) -> Rate {
        let ratio = Ratio::between(self.start_score, self.score);
        let mean = ratio.map_or(1.0, |ratio| ratio.factor);
        let (low, high) = ratio.and_then(|ratio| ratio.interval).unwrap_or((mean, mean));
        Rate { mean, low, high }
    }

    /// The factor that was predicted for the result, by what was known before its trial: the last prediction that was kept, on
    /// top of what was measured until then.
    pub fn predicted(&self) -> Option<f64> {
        let kept = self
            .rows
            .iter()
            .rev()
            .find(|row| matches!(row.verdict, Verdict::Kept { .. }))?;
        let against = kept.score?.mean / kept.gain?;
        Some(kept.predicted? * against / self.start_score.mean)
    }

    /// What the best run still suffers from that no setting changes: faults of the program's own code, the costliest first.
    pub fn code_faults(&self) -> Vec<&Finding> {
        let costs = |finding: &&Finding| {
            finding.kind == Kind::Cause && finding.severity >= Severity::Warning && finding.gain.is_some()
        };
        let all = self.findings.iter().filter(costs);
        all.filter(|finding| is_of_the_code(finding)).collect()
    }

    /// Whether nothing helped and the program's own code takes a large part of the time.
    pub fn is_answered_by_code(&self) -> bool {
        let large = |fault: &&Finding| fault.gain.is_some_and(|gain| gain.high >= ANSWER_GAIN);
        !self.changed && self.code_faults().iter().any(large)
    }

    /// Settings of the result that differ from the start.
    pub fn changes(&self) -> Settings {
        let all = self
            .settings
            .0
            .iter()
            .filter(|(key, value)| self.start.get(key) != Some(value.as_str()));
        all.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// A wait, not a line: what makes the batches slow is another finding's.
const NOT_A_LINE: &str = "loader-starved";
/// Lines that take a fifth of the time are the answer, where no setting helps.
const ANSWER_GAIN: f64 = 1.25;

/// Whether a line of the program's own is to be changed, and no setting would do.
fn is_of_the_code(finding: &Finding) -> bool {
    let is_setting =
        |fix: &Fix| matches!(fix, Fix::Setting { setting, .. } if settings::find(setting).is_some());
    let is_code = |fix: &Fix| matches!(fix, Fix::Code { .. } | Fix::Edits { .. });
    finding.rule != NOT_A_LINE
        && !finding.fixes.iter().any(is_setting)
        && finding.fixes.iter().any(is_code)
        && !finding.places.is_empty()
}

/// What the program said last, as far as a table has room for it.
fn last_line(tail: &str) -> Option<String> {
    const LONGEST: usize = 100;
    let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(text::shortened(line, LONGEST))
}

/// How a trial that measured nothing ended, in words.
pub fn words(outcome: &Outcome) -> Message {
    match outcome {
        Outcome::Failed { how, tail } => match last_line(tail) {
            Some(line) => Message {
                en: format!("{}: {line}", how.en),
                zh: format!("{}：{line}", how.zh),
            },
            None => how.clone(),
        },
        Outcome::TooShort { steps, .. } => {
            message!(en: "the program ended after {steps} steps, too few to measure", zh: "程序运行 {steps} 步后就结束，来不及测量")
        }
        Outcome::Hung { seconds, .. } => {
            message!(en: "no step for {seconds:.0} s", zh: "{seconds:.0} 秒内没有完成任何一步")
        }
        Outcome::OutOfMemory { message, .. } => Message::verbatim(message.clone()),
        Outcome::Interrupted => message!(en: "interrupted", zh: "已中断"),
        Outcome::Measured(_) => Message::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Place;

    fn finding(fix: Fix) -> Finding {
        Finding {
            places: vec![Place::new("train.py", 12)],
            fixes: vec![fix],
            ..Finding::new("x", Severity::Warning, Message::verbatim("x"))
        }
    }

    #[test]
    fn only_a_line_without_a_setting_is_a_fault_of_the_code() {
        let say = || Message::verbatim("y");
        let code = finding(Fix::Code {
            place: None,
            say: say(),
        });
        assert!(is_of_the_code(&code));
        let setting = finding(Fix::Setting {
            setting: "loader.num_workers".into(),
            from: None,
            to: "4".into(),
            say: say(),
        });
        assert!(!is_of_the_code(&setting));
        let machine = finding(Fix::Command {
            command: "nvidia-smi".into(),
            say: say(),
        });
        assert!(!is_of_the_code(&machine));
        let nowhere = Finding {
            places: Vec::new(),
            ..code
        };
        assert!(!is_of_the_code(&nowhere));
    }
}
