//! YAML and flags to settings. Groups that people use (`train:`, `dataset:`, `optimizer:` …) are only headings; `pretrain:` and
//! `global:` are phases, each with values of its own.

mod alternatives;
mod entries;
mod mistakes;
mod place;
#[cfg(test)]
mod tests;

use crate::batch_size::Batch;
use crate::recipe::{self, Line};
use crate::settings::{self, Settings, Values};
use crate::{SETTINGS, TrainError};
use entries::entries;
use flatout_core::Message;
use flatout_core::error::FileError;
use flatout_core::files::read_text;
use place::{PHASES, place};
use std::collections::BTreeSet;
use std::path::Path;

/// The first line of a resolved file: what stands there was not all given by somebody.
const RESOLVED: &str = "# as resolved by flatout, defaults and all";
/// The heading of a recipe.
const GENERATE: &str = "generate";

/// One phase of training: the run's values with the phase's own over them.
#[derive(Clone, Debug)]
pub struct Phase {
    pub name: String,
    pub settings: Settings,
}

/// What the run is asked to do.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub settings: Settings,
    /// At least one.
    pub phases: Vec<Phase>,
    /// What was accepted but has no effect, and why.
    pub notes: Vec<Message>,
    /// Settings that somebody gave, in the file or as a flag.
    pub given: BTreeSet<&'static str>,
    /// As resolved, for `config.yaml`.
    pub resolved: Vec<(&'static str, String)>,
    /// What each phase has of its own.
    own: Vec<(String, Values)>,
    /// See [`Self::go_on`].
    pub endless: bool,
}

/// How many of a file's values are settings, and whether one of them names data.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownKeys {
    pub known: usize,
    pub all: usize,
    pub names_data: bool,
    /// Values whose key is spelled nearly as a setting.
    pub misspelled: usize,
}

impl KnownKeys {
    /// Whether the file is one of `flatout train`: it names data and most of its keys are settings, or all of them are, some misspelled.
    pub fn are_settings(&self) -> bool {
        let most = self.names_data && self.known * 3 >= self.all * 2;
        most || (self.known > 0 && self.known + self.misspelled == self.all)
    }
}

/// Epochs that nobody waits for.
const WITHOUT_END: u64 = 1_000_000;

impl Configuration {
    /// The last phase goes on until it is ended from outside, whatever its epochs and its patience: for a trial of `flatout tune`, since a
    /// training of a second would be over before anything is known.
    pub fn go_on(&mut self) {
        self.endless = true;
        if let Some(last) = self.phases.last_mut() {
            last.settings.epochs = WITHOUT_END;
            last.settings.epochs_open = false;
        }
    }

    /// `file` under the flags.
    pub fn read(file: Option<&Path>, flags: &Values) -> Result<Self, TrainError> {
        let Some(path) = file else {
            return Self::of(Path::new(""), "", flags);
        };
        let text = read_text(path)?;
        Self::of(path, &text, flags)
    }

    /// The same for a text that is already there; `path` is where it came from. An error names every mistake in it.
    pub fn of(path: &Path, text: &str, flags: &Values) -> Result<Self, TrainError> {
        Self::resolve(path, text, flags).map_err(|first| mistakes::all(path, text, flags, first))
    }

    /// Everything in a file that `train --config` would refuse before it looks at the data, each with its line.
    pub fn mistakes(path: &Path, flags: &Values) -> Vec<Message> {
        let said = |error: &TrainError| mistakes::in_words(error);
        match Self::read(Some(path), flags) {
            Ok(configuration) if !configuration.given.contains("data") => Vec::new(),
            Ok(configuration) => configuration.missing_data().iter().map(said).collect(),
            Err(TrainError::Mistakes { list, .. }) => list,
            Err(error) => vec![said(&error)],
        }
    }

    /// Data that are neither there nor made.
    fn missing_data(&self) -> Option<TrainError> {
        let Some(path) = &self.settings.data else {
            return Some(TrainError::Missing { setting: "data" });
        };
        let there = self.settings.recipe.is_some() || path.exists() || flatout_data::glob::is_pattern(path);
        let missing = || FileError::reading(path, std::io::ErrorKind::NotFound.into());
        (!there).then(|| missing().into())
    }

    /// What a file is made of; `None` where it is no YAML.
    pub fn known_keys(path: &Path) -> Option<KnownKeys> {
        let text = read_text(path).ok()?;
        let mut keys = KnownKeys::default();
        for entry in entries(path, &text).ok()? {
            let made = entry.path.first().is_some_and(|heading| heading == GENERATE);
            let mut values = Values::new();
            let placed = place(path, &entry, &mut values, &mut Vec::new()).is_ok();
            keys.all += 1;
            keys.known += usize::from(made || placed);
            let near = |key: &String| settings::nearest(key).is_some();
            keys.misspelled += usize::from(!made && !placed && entry.path.last().is_some_and(near));
            keys.names_data |= made || values.contains_key("data");
        }
        Some(keys)
    }

    fn resolve(path: &Path, text: &str, flags: &Values) -> Result<Self, TrainError> {
        let (mut values, mut phases, mut lines) = (Values::new(), Vec::new(), Vec::new());
        for entry in entries(path, text)? {
            match entry.path.as_slice() {
                [heading, key] if heading == GENERATE => lines.push(Line {
                    key: key.replace('-', "_"),
                    text: entry.text.clone(),
                    place: format!("{}:{}", path.display(), entry.line),
                }),
                _ => place(path, &entry, &mut values, &mut phases)?,
            }
        }
        let mut given: BTreeSet<&'static str> = flags.keys().copied().collect();
        if !text.starts_with(RESOLVED) {
            given.extend(values.keys().copied());
            given.extend(
                phases
                    .iter()
                    .flat_map(|(_, own): &(String, Values)| own.keys().copied()),
            );
        }
        // The recipe is for the file's own path. Elsewhere are the user's data: a mistyped path must not become generated data.
        let elsewhere = flags
            .get("data")
            .is_some_and(|data| values.get("data") != Some(data));
        values.extend(flags.iter().map(|(name, value)| (*name, value.clone())));
        let early = |name: &str, off: &str| values.get(name).is_some_and(|value| value != off);
        let watches =
            early("early_stopping", "0") || values.get("lr_schedule").is_some_and(|name| name == "plateau");
        // A resolved file has an interval that nobody may have given: the default, where it watched nothing.
        let interval_given = match values.get("eval_interval") {
            Some(interval) => {
                given.contains("eval_interval") || !settings::is_default("eval_interval", interval)
            }
            None => false,
        };
        if watches && !interval_given {
            values.insert("eval_interval", "1".to_owned());
        }
        // A rate that somebody typed is used as it is. A resolved file has a `keep_lr` that nobody may have given.
        if given.contains("learning_rate") && !given.contains("keep_lr") {
            values.insert("keep_lr", "true".to_owned());
        }
        // A training goes on where it is, whatever the file says; only a flag sends it elsewhere.
        if let Some(folder) = values.get("resume").and_then(|path| resumed_folder(path))
            && !flags.contains_key("output_dir")
        {
            values.insert("output_dir", folder);
        }
        for (_, own) in &mut phases {
            own.retain(|name, _| !flags.contains_key(name));
        }
        let recipe = recipe::read(&lines)?.filter(|_| !elsewhere);
        let resolve = |values: &Values| -> Result<Settings, TrainError> {
            Ok(Settings {
                recipe: recipe.clone(),
                ..Settings::of(values)?
            })
        };
        let settings = resolve(&values)?;
        phases.sort_by_key(|(name, _)| PHASES.iter().position(|phase| phase == name));
        let own = phases;
        let phase = |(name, own): &(String, Values)| {
            let mut all = values.clone();
            all.extend(own.clone());
            Ok(Phase {
                name: name.clone(),
                settings: resolve(&all)?,
            })
        };
        let mut phases = own.iter().map(phase).collect::<Result<Vec<_>, TrainError>>()?;
        if phases.is_empty() {
            phases.push(Phase {
                name: "train".to_owned(),
                settings: settings.clone(),
            });
        }
        let used = |setting: &&settings::Setting| values.contains_key(setting.name);
        let notes = SETTINGS.iter().filter(used).filter_map(|setting| {
            let (name, why) = (setting.name, (setting.pointless?)());
            Some(Message {
                en: format!("{name}: {}", why.en),
                zh: format!("{name}：{}", why.zh),
            })
        });
        let resolved = SETTINGS
            .iter()
            // What is continued, or began with, is no setting of the model.
            .filter(|setting| setting.pointless.is_none() && !["resume", "init"].contains(&setting.name))
            .map(|setting| {
                let value = values.get(setting.name).cloned();
                (setting.name, value.unwrap_or_else(|| setting.default.to_owned()))
            });
        Ok(Self {
            notes: notes.collect(),
            resolved: resolved.collect(),
            given,
            settings,
            phases,
            own,
            endless: false,
        })
    }

    /// The settings that have several values to try, with these values.
    pub fn lists(
        path: &Path,
        text: &str,
        flags: &Values,
    ) -> Result<Vec<(&'static str, Vec<String>)>, TrainError> {
        let values = Self::written(path, text, flags)?.into_iter();
        Ok(values
            .map(|(name, value)| (name, alternatives::of(name, &value)))
            .filter(|(_, values)| values.len() > 1)
            .collect())
    }

    /// The values of the whole run as they are written, the flags over those of the file.
    pub fn written(path: &Path, text: &str, flags: &Values) -> Result<Values, TrainError> {
        let (mut values, mut phases) = (Values::new(), Vec::new());
        for entry in entries(path, text)? {
            if entry.path.first().is_none_or(|heading| heading != GENERATE) {
                place(path, &entry, &mut values, &mut phases)?;
            }
        }
        values.extend(flags.iter().map(|(name, value)| (*name, value.clone())));
        Ok(values)
    }

    /// The same with the batch size that a phase really has in place of `auto`, the rate that goes with it, and the passes and evaluations
    /// of `length`.
    #[must_use]
    pub fn with_batch(&self, phase: usize, batch: Batch, length: &Settings) -> Self {
        let mut changed = self.clone();
        let Some(settings) = self.phases.get(phase).map(|phase| &phase.settings) else {
            return changed;
        };
        let mut decided = Vec::new();
        if settings.batch_size.is_none() {
            let size = (batch.effective / settings.gradient_accumulation_steps).max(1);
            let rate = settings.learning_rate * batch.rate_factor;
            decided.push(("batch_size", size.to_string()));
            decided.push(("learning_rate", rate.to_string()));
        }
        if settings.epochs_open {
            decided.push(("epochs", length.epochs.to_string()));
            decided.push(("eval_interval", length.eval_interval.to_string()));
        }
        for (name, value) in decided {
            match changed.own.get_mut(phase) {
                Some((_, own)) => {
                    own.insert(name, value);
                }
                None => {
                    let entry = changed.resolved.iter_mut().find(|(setting, _)| *setting == name);
                    entry.into_iter().for_each(|(_, text)| text.clone_from(&value));
                }
            }
        }
        changed
    }

    /// The resolved settings as YAML.
    pub fn yaml(&self) -> String {
        let lines = self.resolved.iter().filter(|(_, value)| !value.is_empty());
        let mut text = format!("{RESOLVED}\n");
        text.extend(lines.map(|(name, value)| format!("{name}: {}\n", quoted(value))));
        for (phase, own) in &self.own {
            text += &format!("{phase}:\n");
            for (name, value) in own {
                text += &format!("  {name}: {}\n", quoted(value));
            }
        }
        if let Some(recipe) = &self.settings.recipe {
            text += &format!("{GENERATE}:\n");
            for (key, value) in recipe::lines(recipe) {
                text += &format!("  {key}: {value}\n");
            }
        }
        text
    }
}

/// The folder of what a training continues from: the folder itself, or that of a checkpoint.
fn resumed_folder(path: &str) -> Option<String> {
    let path = Path::new(path);
    if path.as_os_str().is_empty() {
        return None;
    }
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).display().to_string())
}

fn quoted(text: &str) -> String {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-/+".contains(c));
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}
