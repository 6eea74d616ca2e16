//! YAML and flags to settings. Groups that people use (`train:`, `dataset:`, `optimizer:` …) are only headings; `pretrain:` and
//! `global:` are phases, each with values of its own.

mod entries;
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
use place::{PHASES, place};
use std::collections::BTreeSet;
use std::path::Path;

/// The first line of a resolved file: what stands there was not all given by somebody.
const RESOLVED: &str = "# as resolved by flatout, defaults and all";
/// The heading of a recipe.
const GENERATE: &str = "generate";

/// Settings in whose one value commas have a meaning of their own.
const WITH_COMMAS: &[&str] = &[
    "data",
    "label",
    "input_size",
    "output_dir",
    "resume",
    "missing",
    "column_type",
];

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

/// Epochs that nobody waits for.
const WITHOUT_END: u64 = 1_000_000;

impl Configuration {
    /// The last phase goes on until it is ended from outside, whatever its epochs and its patience: for a trial of `flatout tune`, since a
    /// training of a second would be over before anything is known.
    pub fn go_on(&mut self) {
        self.endless = true;
        if let Some(last) = self.phases.last_mut() {
            last.settings.epochs = WITHOUT_END;
        }
    }

    /// `file` under the flags.
    pub fn read(file: Option<&Path>, flags: &Values) -> Result<Self, TrainError> {
        let Some(path) = file else {
            return Self::of(Path::new(""), "", flags);
        };
        let text = std::fs::read_to_string(path).map_err(|source| FileError::reading(path, source))?;
        Self::of(path, &text, flags)
    }

    /// The same for a text that is already there; `path` is where it came from.
    pub fn of(path: &Path, text: &str, flags: &Values) -> Result<Self, TrainError> {
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
            .filter(|setting| setting.pointless.is_none())
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

    /// The settings that are given as lists, with their values. What is one value made of several is none.
    pub fn lists(
        path: &Path,
        text: &str,
        flags: &Values,
    ) -> Result<Vec<(&'static str, Vec<String>)>, TrainError> {
        let (mut values, mut phases) = (Values::new(), Vec::new());
        for entry in entries(path, text)? {
            if entry.path.first().is_none_or(|heading| heading != GENERATE) {
                place(path, &entry, &mut values, &mut phases)?;
            }
        }
        values.extend(flags.iter().map(|(name, value)| (*name, value.clone())));
        let list = |(name, value): (&'static str, String)| {
            let values = value.split(',').map(|one| one.trim().to_owned()).collect();
            (name, values)
        };
        let several = values
            .into_iter()
            .filter(|(name, value)| value.contains(',') && !WITH_COMMAS.contains(name));
        Ok(several.map(list).collect())
    }

    /// The same with the batch size that a phase really has in place of `auto`, and the rate that goes with it.
    #[must_use]
    pub fn with_batch(&self, phase: usize, batch: Batch) -> Self {
        let mut changed = self.clone();
        let Some(settings) = self.phases.get(phase).map(|phase| &phase.settings) else {
            return changed;
        };
        if settings.batch_size.is_some() {
            return changed;
        }
        let size = (batch.effective / settings.gradient_accumulation_steps).max(1);
        let rate = settings.learning_rate * batch.rate_factor;
        for (name, value) in [
            ("batch_size", size.to_string()),
            ("learning_rate", rate.to_string()),
        ] {
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
