//! What a search found: a row a trial, and the result.

use crate::trial::{Measurement, Outcome, Rate, Settings};
use flatout_core::{Finding, Message, message, text};
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
    /// The factor on the objective, with the range it lies in.
    pub fn gain(&self) -> Rate {
        let (score, start) = (self.score, self.start_score);
        Rate {
            mean: score.mean / start.mean,
            low: score.low / start.high,
            high: score.high / start.low.max(f64::MIN_POSITIVE),
        }
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
            message!(en: "the program ended after {steps} steps, too soon to measure", zh: "程序运行 {steps} 步后就结束，来不及测量")
        }
        Outcome::Hung { seconds, .. } => {
            message!(en: "no step for {seconds:.0} s", zh: "{seconds:.0} 秒内没有完成任何一步")
        }
        Outcome::OutOfMemory { message, .. } => Message::verbatim(message.clone()),
        Outcome::Interrupted => message!(en: "interrupted", zh: "已中断"),
        Outcome::Measured(_) => Message::default(),
    }
}
