//! Each finding of the runs: gone, new or still there, with its number before and after.

use crate::digest::Digest;
use flatout_compare::Outcome;
use flatout_core::{Evidence, Finding, Kind, Message, units};
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// In the first run, not in the last.
    Gone,
    New,
    StillThere,
    /// Only in a run between.
    Between,
    /// The run without it has too little data to tell.
    Unknown,
}

#[derive(Debug, Serialize)]
pub struct FindingRow {
    pub rule: String,
    /// Of the last run that has it.
    pub title: Message,
    pub fate: Fate,
    /// In which runs.
    pub seen: Vec<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
}

/// What a finding measured in each run.
#[derive(Debug, Serialize)]
pub struct Number {
    pub what: Message,
    pub unit: String,
    /// A run without the finding has none.
    pub values: Vec<Option<f64>>,
    /// From the first run to the last; `None` where one of them lacks the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The verdicts of runs that were judged.
const JUDGED: [&str; 2] = ["nothing-wrong", "no-single-cause"];
/// A finding has no interval of its own: less than a twentieth of it, or less than one point, is called unchanged.
const NOISE_SHARE: f64 = 0.05;
const NOISE_POINTS: f64 = 1.0;

pub(super) fn of(digests: &[Digest]) -> Vec<FindingRow> {
    let all: Vec<Vec<&Finding>> = digests.iter().map(real).collect();
    let mut done = BTreeSet::new();
    let mut rows = Vec::new();
    for rule in all.iter().flatten().map(|finding| finding.rule.as_str()) {
        if !done.insert(rule) {
            continue;
        }
        let same = |run: &Vec<&'_ Finding>| -> Option<usize> { run.iter().position(|one| one.rule == rule) };
        let each: Vec<Option<&Finding>> = all.iter().map(|run| same(run).map(|at| run[at])).collect();
        let Some(last) = each.iter().rev().flatten().next() else {
            continue;
        };
        rows.push(FindingRow {
            rule: rule.to_owned(),
            title: last.title.clone(),
            fate: fate(&each, digests),
            seen: each.iter().map(Option::is_some).collect(),
            number: number(&each),
        });
    }
    rows.sort_by_key(|row| row.fate.order());
    rows
}

fn real(digest: &Digest) -> Vec<&Finding> {
    let all = digest.diagnosis.findings.iter();
    all.filter(|finding| finding.kind != Kind::Verdict).collect()
}

fn fate(each: &[Option<&Finding>], digests: &[Digest]) -> Fate {
    let is_there = |one: Option<&Option<&Finding>>| one.is_some_and(Option::is_some);
    match (is_there(each.first()), is_there(each.last())) {
        (true, true) => Fate::StillThere,
        (true, _) if digests.last().is_some_and(is_judged) => Fate::Gone,
        (_, true) if digests.first().is_some_and(is_judged) => Fate::New,
        (false, false) => Fate::Between,
        _ => Fate::Unknown,
    }
}

/// Whether a finding that is absent says that the fault is: not in a run that was too short to be judged.
fn is_judged(digest: &Digest) -> bool {
    let mut verdicts = digest
        .diagnosis
        .findings
        .iter()
        .filter(|finding| finding.kind == Kind::Verdict);
    verdicts.all(|finding| JUDGED.contains(&finding.rule.as_str()))
}

/// The first evidence that all runs with the finding have: a rule puts its main one first.
fn number(each: &[Option<&Finding>]) -> Option<Number> {
    let first = each.iter().flatten().next()?;
    let same = |finding: &Finding, wanted: &Evidence| {
        let mut all = finding.evidence.iter();
        all.find(|one| one.what == wanted.what && one.unit == wanted.unit)
            .cloned()
    };
    let shared = first
        .evidence
        .iter()
        .find(|wanted| each.iter().flatten().all(|one| same(one, wanted).is_some()))?;
    let found: Vec<Option<Evidence>> = each.iter().map(|finding| same((*finding)?, shared)).collect();
    let ends = found
        .first()
        .cloned()
        .flatten()
        .zip(found.last().cloned().flatten());
    Some(Number {
        what: shared.what.clone(),
        unit: shared.unit.clone(),
        values: found.iter().map(|one| Some(one.as_ref()?.value)).collect(),
        outcome: ends
            .filter(|_| each.len() > 1)
            .map(|(first, last)| outcome(&first, &last)),
    })
}

/// A finding is about a value beyond its threshold: further beyond is worse.
fn outcome(first: &Evidence, last: &Evidence) -> Outcome {
    let difference = last.value - first.value;
    let least = NOISE_SHARE * first.value.abs().max(last.value.abs());
    let points = if first.unit == "%" { NOISE_POINTS } else { 0.0 };
    if difference.abs() <= least.max(points) {
        return Outcome::Noise;
    }
    let higher_is_worse = match first.threshold {
        Some(threshold) => first.value >= threshold,
        // Shares of the time, and times.
        None if ["%", "ms", "s", "µs"].contains(&first.unit.as_str()) => true,
        None => return Outcome::Changed,
    };
    if (difference > 0.0) == higher_is_worse {
        Outcome::Worse
    } else {
        Outcome::Better
    }
}

impl Fate {
    fn order(self) -> u8 {
        match self {
            Self::Gone => 0,
            Self::New => 1,
            Self::StillThere => 2,
            Self::Unknown => 3,
            Self::Between => 4,
        }
    }
}

impl Number {
    /// A bare count that only one run has tells nothing: `– → 835`.
    pub fn is_telling(&self) -> bool {
        !self.unit.is_empty() || self.values.iter().all(Option::is_some)
    }

    /// `28.7% → 57.9%`
    pub fn show(&self) -> String {
        let each: Vec<String> = self
            .values
            .iter()
            .map(|value| value.map_or_else(|| "–".to_owned(), |value| self.show_one(value)))
            .collect();
        each.join(" → ")
    }

    fn show_one(&self, value: f64) -> String {
        match self.unit.as_str() {
            "%" => units::percent(value / 100.0),
            "" => units::significant(value),
            unit => format!("{} {unit}", units::significant(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::Severity;

    fn finding(value: f64, unit: &str, threshold: Option<f64>) -> Finding {
        let mut evidence = Evidence::new(Message::verbatim("waiting"), value, unit);
        evidence.threshold = threshold;
        Finding {
            evidence: vec![evidence],
            ..Finding::new("loader-starved", Severity::Warning, Message::verbatim("waits"))
        }
    }

    fn told(first: &Finding, last: &Finding) -> (String, Option<Outcome>) {
        let number = number(&[Some(first), Some(last)]).unwrap();
        (number.show(), number.outcome)
    }

    #[test]
    fn both_numbers_and_which_way() {
        let share = |value| finding(value, "%", Some(10.0));
        assert_eq!(
            told(&share(28.7), &share(57.9)),
            ("28.7% → 57.9%".into(), Some(Outcome::Worse))
        );
        assert_eq!(told(&share(57.9), &share(28.7)).1, Some(Outcome::Better));
        assert_eq!(told(&share(28.7), &share(29.5)).1, Some(Outcome::Noise));
        // A utilization below its limit.
        let busy = |value| finding(value, "%", Some(60.0));
        assert_eq!(told(&busy(20.0), &busy(40.0)).1, Some(Outcome::Better));
        let workers = |value| finding(value, "", None);
        assert_eq!(
            told(&workers(2.0), &workers(4.0)),
            ("2 → 4".into(), Some(Outcome::Changed))
        );
    }

    #[test]
    fn a_run_without_the_finding_has_no_number() {
        let number = number(&[Some(&finding(30.0, "%", None)), None]).unwrap();
        assert_eq!((number.show().as_str(), number.outcome), ("30% → –", None));
        assert!(number.is_telling());
        let count = super::number(&[None, Some(&finding(835.0, "", None))]).unwrap();
        assert!(!count.is_telling());
    }
}
