//! `flatout run --auto`: what the program's own process may change while it runs, and what it reports about each change.
//!
//! The changes are made and measured by `_flatout_apply` inside the training process; they reach the record as facts `auto.KEY`.

mod lines;
mod summary;

use crate::RunError;
use flatout_core::cpus::UsableCpus;
use flatout_record::RunData;
use flatout_vocabulary::settings;
use serde::Deserialize;
use serde_json::json;
pub use summary::{ended_badly, summary};

/// Kinds of changes that `--allow` opens: they change the numbers that come out.
pub const KINDS: [&str; 4] = ["precision", "batch", "compile", "padding"];

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auto {
    pub allow: Vec<String>,
    pub without: Vec<String>,
}

impl Auto {
    pub fn parse(allow: &[String], without: &[String]) -> Result<Self, RunError> {
        let named = |names: &[String]| -> Vec<String> {
            names
                .iter()
                .map(|name| name.trim().to_ascii_lowercase())
                .filter(|name| !name.is_empty())
                .collect()
        };
        let allow = named(allow);
        if let Some(name) = allow.iter().find(|name| !KINDS.contains(&name.as_str())) {
            return Err(RunError::Allow { name: name.clone() });
        }
        let key = |name: String| {
            let known = settings::find(&name).map(|setting| setting.key.to_owned());
            known.unwrap_or(name)
        };
        Ok(Self {
            allow,
            without: named(without).into_iter().map(key).collect(),
        })
    }

    /// As the training process reads it.
    pub fn environment(&self) -> String {
        let cpus = UsableCpus::here().count();
        json!({ "allow": self.allow, "without": self.without, "cpus": cpus }).to_string()
    }
}

/// What became of a change.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Tried,
    Kept,
    TakenBack,
    LeftAlone,
}

/// One change, as its last fact has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Change {
    pub state: State,
    /// As `--apply` takes it: `loader.num_workers=8`.
    pub setting: String,
    #[serde(default)]
    pub step: u64,
    #[serde(default)]
    pub reason: Option<String>,
    /// Low, middle and high of the factor on the steps per second.
    #[serde(default)]
    pub gain: Option<[f64; 3]>,
}

impl Change {
    pub fn key(&self) -> &str {
        self.setting.split('=').next().unwrap_or(&self.setting)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Total {
    pub saved_s: f64,
}

/// The changes of a run, in the order in which they were tried.
pub fn changes(data: &RunData) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for fact in &data.facts {
        let is_change = fact.key.starts_with("auto.") && fact.key != TOTAL;
        let Some(change) = is_change
            .then(|| serde_json::from_value::<Change>(fact.value.clone()).ok())
            .flatten()
        else {
            continue;
        };
        match all.iter_mut().find(|known| known.setting == change.setting) {
            Some(known) => *known = change,
            None => all.push(change),
        }
    }
    all
}

const TOTAL: &str = "auto.total";

fn total(data: &RunData) -> Option<Total> {
    let last = data.facts.iter().rev().find(|fact| fact.key == TOTAL)?;
    serde_json::from_value(last.value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::Fact;

    pub fn data(facts: &[(&str, serde_json::Value)]) -> RunData {
        let fact = |(key, value): &(&str, serde_json::Value)| Fact {
            t: 0.0,
            key: (*key).to_owned(),
            value: value.clone(),
            scope: None,
            place: None,
        };
        RunData {
            facts: facts.iter().map(fact).collect(),
            ..RunData::default()
        }
    }

    #[test]
    fn a_change_is_what_its_last_fact_reports() {
        let data = data(&[
            (
                "auto.loader.batched",
                json!({"state": "tried", "setting": "loader.batched=on"}),
            ),
            (
                "auto.gc.freeze",
                json!({"state": "left-alone", "setting": "gc.freeze=on", "reason": "excluded"}),
            ),
            (
                "auto.loader.batched",
                json!({"state": "kept", "setting": "loader.batched=on", "gain": [1.5, 1.6, 1.7]}),
            ),
            ("auto.total", json!({"saved_s": 3.0})),
            ("auto.broken", json!("text")),
        ]);
        let all = changes(&data);
        assert_eq!(all.len(), 2);
        assert!(all[0].state == State::Kept && all[0].gain == Some([1.5, 1.6, 1.7]));
        assert_eq!(all[0].key(), "loader.batched");
        assert_eq!(total(&data).map(|total| total.saved_s), Some(3.0));
    }

    #[test]
    fn unknown_kinds_are_refused_and_settings_get_their_keys() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(Auto::parse(&words(&["precision", "speed"]), &[]).is_err());
        let auto = Auto::parse(&words(&[" Batch"]), &words(&["num_workers", "copy.non_blocking"])).unwrap();
        assert_eq!(auto.allow, ["batch"]);
        assert_eq!(auto.without, ["loader.num_workers", "copy.non_blocking"]);
        assert!(auto.environment().contains("\"cpus\":"));
    }
}
