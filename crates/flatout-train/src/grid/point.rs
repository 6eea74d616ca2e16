//! One combination: its configuration, its folder, and what is known of it from an earlier call.

use crate::metrics::Scores;
use crate::settings::Values;
use crate::{Configuration, Outcome, TrainError, checkpoint};
use flatout_core::Message;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const SCHEMA: u32 = 1;
/// Settings that change where or how, but not what is trained.
const NOT_COMPARED: &[&str] = &["output_dir", "resume", "init", "threads"];

pub struct Point {
    /// What this combination has of each axis.
    pub values: Vec<(&'static str, String)>,
    /// `hidden_size-128_sequence_length-30`: also its folder.
    pub name: String,
    pub grid_dir: PathBuf,
    file: PathBuf,
    text: String,
    flags: Values,
}

/// What came out of a combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PointResult {
    pub schema: u32,
    pub name: String,
    pub values: Vec<(String, String)>,
    /// The validation loss of the best evaluation.
    pub best_loss: Option<f64>,
    /// The score that decides, and the best of it.
    #[serde(default)]
    pub selected: String,
    #[serde(default)]
    pub best: Option<f64>,
    /// Of the evaluation with the best one.
    #[serde(default)]
    pub best_scores: Option<Scores>,
    /// Of the last evaluation.
    pub scores: Option<Scores>,
    /// `None` where nothing was trained.
    pub samples_s: Option<f64>,
    pub seconds: f64,
    pub output_dir: PathBuf,
    /// Why it failed.
    pub error: Option<String>,
    /// What was trained, for a later call to compare with.
    configuration: String,
}

impl Point {
    pub(super) fn new(
        file: &Path,
        text: &str,
        flags: &Values,
        values: Vec<(&'static str, String)>,
    ) -> Result<Self, TrainError> {
        let parts: Vec<String> = values
            .iter()
            .map(|(name, value)| format!("{name}-{}", plain(value)))
            .collect();
        let mut point = Self {
            name: parts.join("_"),
            values,
            grid_dir: PathBuf::new(),
            file: file.to_owned(),
            text: text.to_owned(),
            flags: flags.clone(),
        };
        // Every value is checked before the first training begins.
        point.grid_dir = point.resolved(&Values::new())?.settings.output_dir;
        Ok(point)
    }

    pub fn output_dir(&self) -> PathBuf {
        self.grid_dir.join(&self.name)
    }

    /// The training of this combination, in its own folder.
    pub fn configuration(&self, more: &Values) -> Result<Configuration, TrainError> {
        let mut more = more.clone();
        more.insert("output_dir", self.output_dir().display().to_string());
        self.resolved(&more)
    }

    fn resolved(&self, more: &Values) -> Result<Configuration, TrainError> {
        let mut flags = self.flags.clone();
        flags.extend(self.values.iter().cloned());
        flags.extend(more.iter().map(|(name, value)| (*name, value.clone())));
        Configuration::of(&self.file, &self.text, &flags)
    }

    /// The result of an earlier call, if it was of the same training.
    pub(super) fn done(&self, configuration: &Configuration) -> Option<PointResult> {
        let result = self.kept()?;
        let same = result.configuration == compared(&configuration.yaml());
        (same && result.error.is_none()).then_some(result)
    }

    /// Whether an earlier call, of whatever settings, trained this combination to its end.
    pub(super) fn is_trained(&self) -> bool {
        self.kept().is_some_and(|result| result.error.is_none())
    }

    /// Why an earlier call failed, if it was of the same training.
    pub(super) fn failed(&self, configuration: &Configuration) -> Option<PointResult> {
        let result = self.kept()?;
        let same = result.configuration == compared(&configuration.yaml());
        (same && result.error.is_some()).then_some(result)
    }

    /// Takes the result of a failed training away; a model that is there stays.
    pub(super) fn forget_failure(&self) {
        if self.kept().is_some_and(|result| result.error.is_some()) {
            let _ = std::fs::remove_file(self.output_dir().join("result.json"));
        }
    }

    /// The result of a task that left none.
    pub(super) fn lost(&self, configuration: &Configuration, reason: &Message) -> PointResult {
        PointResult {
            error: Some(reason.en.clone()),
            ..self.result(configuration, Err(TrainError::Missing { setting: "result" }))
        }
    }

    /// What tells this training from others: its settings, without those that change where it runs.
    pub fn identity(&self) -> Result<String, TrainError> {
        let configuration = self.configuration(&Values::new())?;
        Ok(compared(&configuration.yaml()))
    }

    fn kept(&self) -> Option<PointResult> {
        let bytes = std::fs::read(self.output_dir().join("result.json")).ok()?;
        let result: PointResult = serde_json::from_slice(&bytes).ok()?;
        (result.schema == SCHEMA).then_some(result)
    }

    /// The checkpoint of an earlier call that did not come to its end, if it was of the same training.
    pub(super) fn begun(&self, configuration: &Configuration) -> Option<PathBuf> {
        let path = checkpoint::find(&self.output_dir());
        let kept = checkpoint::describe(&path).ok()?;
        (compared(&kept.configuration) == compared(&configuration.yaml())).then_some(path)
    }

    pub(super) fn result(
        &self,
        configuration: &Configuration,
        outcome: Result<Outcome, TrainError>,
    ) -> PointResult {
        let (outcome, error) = match outcome {
            Ok(outcome) => (Some(outcome), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let values = self.values.iter();
        PointResult {
            schema: SCHEMA,
            name: self.name.clone(),
            values: values
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            selected: configuration.settings.select.name().to_owned(),
            best: outcome.as_ref().and_then(|outcome| outcome.best),
            best_scores: outcome.as_ref().and_then(|outcome| outcome.best_scores),
            best_loss: outcome.as_ref().and_then(|outcome| outcome.best_loss),
            scores: outcome.as_ref().and_then(|outcome| outcome.scores),
            samples_s: outcome.as_ref().and_then(|outcome| outcome.samples_s),
            seconds: outcome.as_ref().map_or(0.0, |outcome| outcome.seconds),
            output_dir: self.output_dir(),
            error,
            configuration: compared(&configuration.yaml()),
        }
    }
}

impl PointResult {
    pub(super) fn keep(&self) -> Result<(), FileError> {
        let folder = &self.output_dir;
        std::fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        write_atomically(&self.output_dir.join("result.json"), text.as_bytes())
    }
}

fn compared(yaml: &str) -> String {
    let counts = |line: &&str| {
        !NOT_COMPARED
            .iter()
            .any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
    };
    yaml.lines()
        .filter(counts)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Harmless as part of a folder's name.
fn plain(value: &str) -> String {
    let harmless = |c: char| {
        if c.is_ascii_alphanumeric() || ".+-".contains(c) {
            c
        } else {
            '-'
        }
    };
    value.chars().map(harmless).collect()
}
