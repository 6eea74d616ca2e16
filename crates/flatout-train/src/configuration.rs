//! YAML and flags to settings. Groups that people use (`train:`, `dataset:`, `optimizer:` …) are only headings; `pretrain:` and
//! `global:` are phases, each with values of its own.

use crate::batch_size::Batch;
use crate::recipe::{self, Line};
use crate::settings::{self, Settings, Values};
use crate::{SETTINGS, TrainError};
use flatout_core::Message;
use flatout_core::error::FileError;
use saphyr_parser::{Event, Parser};
use std::path::Path;

/// Headings whose keys are settings of the whole run.
const GROUPS: &[&str] = &[
    "train",
    "training",
    "dataset",
    "data",
    "optimizer",
    "model",
    "scheduler",
    "loader",
    "dataloader",
];
/// The heading of a recipe.
const GENERATE: &str = "generate";
/// Headings that are phases, in this order.
const PHASES: &[&str] = &["pretrain", "global"];

/// Settings in whose one value commas have a meaning of their own.
const WITH_COMMAS: &[&str] = &["data", "label", "input_size", "output_dir", "resume"];

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
    /// As resolved, for `config.yaml`.
    pub resolved: Vec<(&'static str, String)>,
    /// What each phase has of its own.
    own: Vec<(String, Values)>,
}

/// A value of the file, with its place.
struct Entry {
    path: Vec<String>,
    text: String,
    line: usize,
}

impl Configuration {
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
        values.extend(flags.iter().map(|(name, value)| (*name, value.clone())));
        for (_, own) in &mut phases {
            own.retain(|name, _| !flags.contains_key(name));
        }
        let recipe = recipe::read(&lines)?;
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
        let given = |setting: &&settings::Setting| values.contains_key(setting.name);
        let notes = SETTINGS.iter().filter(given).filter_map(|setting| {
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
            settings,
            phases,
            own,
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
        let mut text: String = lines
            .map(|(name, value)| format!("{name}: {}\n", quoted(value)))
            .collect();
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

fn place(
    path: &Path,
    entry: &Entry,
    values: &mut Values,
    phases: &mut Vec<(String, Values)>,
) -> Result<(), TrainError> {
    let (group, key) = match entry.path.as_slice() {
        [key] => (None, key),
        [group, key] => (Some(group.as_str()), key),
        longer => (Some(""), &longer[longer.len() - 1]),
    };
    let unknown = || TrainError::UnknownKey {
        key: entry.path.join("."),
        place: format!("{}:{}", path.display(), entry.line),
        nearest: settings::nearest(key),
    };
    // `model: lstm` is a setting, `model: {…}` a heading; `name` under a heading says which.
    let known = match (group, key.as_str()) {
        (Some("model" | "dataset" | "data" | "optimizer"), "name" | "type") => {
            group.and_then(|group| match group {
                "dataset" | "data" => settings::find("data"),
                heading => settings::find(heading),
            })
        }
        _ => settings::find(key),
    };
    let setting = known.ok_or_else(unknown)?;
    match group {
        None => {
            values.insert(setting.name, entry.text.clone());
        }
        Some(group) if GROUPS.contains(&group) => {
            values.insert(setting.name, entry.text.clone());
        }
        Some(group) if PHASES.contains(&group) => {
            if !phases.iter().any(|(name, _)| name == group) {
                phases.push((group.to_owned(), Values::new()));
            }
            if let Some((_, own)) = phases.iter_mut().find(|(name, _)| name == group) {
                own.insert(setting.name, entry.text.clone());
            }
        }
        Some(_) => return Err(unknown()),
    }
    Ok(())
}

/// The file's scalars with their paths; lists are joined by commas.
fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, TrainError> {
    enum Frame {
        Mapping { key: Option<String> },
        Sequence { items: Vec<String>, line: usize },
    }
    let (mut stack, mut found): (Vec<Frame>, Vec<Entry>) = (Vec::new(), Vec::new());
    let keys = |stack: &[Frame]| -> Vec<String> {
        let keys = stack.iter().filter_map(|frame| match frame {
            Frame::Mapping { key } => key.clone(),
            Frame::Sequence { .. } => None,
        });
        keys.collect()
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, at) = event.map_err(|error| TrainError::Syntax {
            path: path.to_owned(),
            line: error.marker().line(),
            reason: error.info().to_owned(),
        })?;
        let line = at.start.line();
        match event {
            Event::MappingStart(..) => stack.push(Frame::Mapping { key: None }),
            Event::SequenceStart(..) => stack.push(Frame::Sequence {
                items: Vec::new(),
                line,
            }),
            Event::Scalar(value, ..) => match stack.last_mut() {
                Some(Frame::Mapping { key: key @ None }) => *key = Some(value.into_owned()),
                Some(Frame::Sequence { items, .. }) => items.push(value.into_owned()),
                _ => {
                    found.push(Entry {
                        path: keys(&stack),
                        text: value.into_owned(),
                        line,
                    });
                    finish(&mut stack);
                }
            },
            Event::SequenceEnd => {
                if let Some(Frame::Sequence { items, line }) = stack.pop() {
                    found.push(Entry {
                        path: keys(&stack),
                        text: items.join(","),
                        line,
                    });
                }
                finish(&mut stack);
            }
            Event::MappingEnd => {
                stack.pop();
                finish(&mut stack);
            }
            _ => {}
        }
    }
    /// The value of the current key is complete.
    fn finish(stack: &mut [Frame]) {
        if let Some(Frame::Mapping { key }) = stack.last_mut() {
            *key = None;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Amp;

    fn read(text: &str) -> Result<Configuration, TrainError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment.yaml");
        std::fs::write(&path, text).unwrap();
        Configuration::read(Some(&path), &Values::new())
    }

    #[test]
    fn the_kuairand_users_file_loads_as_it_stands() {
        let text = "# 数据加载优化\ndataset:\n  num_workers: 8        # 数据加载进程数\n  pin_memory: true\n\nuse_amp: true\n\npretrain:\n  batch_size: 512\n\nglobal:\n  batch_size: 128\n";
        let configuration = read(text).unwrap();
        assert_eq!(configuration.settings.amp, Amp::Bf16);
        let phases: Vec<_> = configuration
            .phases
            .iter()
            .map(|p| (p.name.as_str(), p.settings.batch_size))
            .collect();
        assert_eq!(phases, [("pretrain", Some(512)), ("global", Some(128))]);
        assert_eq!(configuration.notes.len(), 2);
    }

    #[test]
    fn the_captcha_users_file_loads_as_it_stands() {
        let text = "train:\n  batch_size: 512          # 从256增加到512\n  amp: true                # 保持不变\n  channels_last: true\n  num_workers: 8\n  pin_memory: true\n  non_blocking: true\n  gradient_accumulation_steps: 2\n  compile_model: true\n  compile_mode: \"max-autotune\"\n  prefetch_factor: 4\n\noptimizer:\n  lr: 6.0e-4\n\ninput_size: [512, 256]\n";
        let configuration = read(text).unwrap();
        let settings = &configuration.settings;
        assert_eq!(
            (
                settings.batch_size,
                settings.gradient_accumulation_steps,
                settings.amp
            ),
            (Some(512), 2, Amp::Bf16)
        );
        assert!((settings.learning_rate - 6e-4).abs() < 1e-12);
        assert_eq!(settings.input_size, Some((512, 256)));
        assert_eq!(configuration.notes.len(), 7);
    }

    #[test]
    fn unknown_keys_are_refused_with_place_and_nearest() {
        let error = read("epochs: 3\ntrain:\n  hiden_size: 4\n").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("experiment.yaml:3: there is no setting `train.hiden_size`"),
            "{error}"
        );
        assert!(
            flatout_core::Explain::hint(&error)
                .unwrap()
                .en
                .contains("hidden_size")
        );
        assert!(matches!(read("a: [1, 2\n"), Err(TrainError::Syntax { .. })));
        assert!(matches!(read("epochs: many\n"), Err(TrainError::Value { .. })));
    }

    #[test]
    fn phases_and_the_recipe_survive_in_the_resolved_file() {
        let text = "epochs: 3\npretrain:\n  epochs: 1\nglobal:\n  batch_size: 128\ngenerate:\n  kind: stocks\n  days: 99\n";
        let configuration = read(text).unwrap();
        assert!(configuration.settings.recipe.is_some());
        let again = read(&configuration.yaml()).unwrap();
        assert_eq!(again.settings, configuration.settings);
        let settings = |c: &Configuration| -> Vec<(String, Settings)> {
            let phases = c.phases.iter();
            phases.map(|p| (p.name.clone(), p.settings.clone())).collect()
        };
        assert_eq!(settings(&again), settings(&configuration));
        assert_eq!(again.phases.len(), 2);
        assert!(matches!(
            read("generate:\n  kind: cats\n"),
            Err(TrainError::Value { .. })
        ));
    }

    #[test]
    fn flags_win_and_the_resolved_file_reads_back() {
        let flags = [("epochs", "3".to_owned())].into();
        let configuration = Configuration::read(None, &flags).unwrap();
        let again = read(&configuration.yaml()).unwrap();
        assert_eq!(again.settings, configuration.settings);
        assert_eq!(again.settings.epochs, 3);
        let phased = read("epochs: 4\npretrain:\n  batch_size: 512\nglobal:\n  epochs: 2\n").unwrap();
        let again = read(&phased.yaml()).unwrap();
        let of = |configuration: &Configuration| -> Vec<_> {
            let phases = configuration.phases.iter();
            phases
                .map(|phase| (phase.name.clone(), phase.settings.clone()))
                .collect()
        };
        assert_eq!(of(&again), of(&phased));
        let batch = Batch {
            effective: 2048,
            micro: 1024,
            rate_factor: 2.0,
        };
        let measured = read(&phased.with_batch(0, batch).with_batch(1, batch).yaml()).unwrap();
        let sizes: Vec<_> = measured
            .phases
            .iter()
            .map(|p| (p.settings.batch_size, p.settings.learning_rate))
            .collect();
        assert_eq!(sizes, [(Some(512), 0.001), (Some(2048), 0.002)]);
        let measured = read(&configuration.with_batch(0, batch).yaml()).unwrap();
        assert_eq!(
            (measured.settings.batch_size, measured.settings.learning_rate),
            (Some(2048), 0.002)
        );
        let flags: Values = [("epochs", "7".to_owned())].into();
        let flagged = Configuration::of(Path::new("a.yaml"), "global:\n  epochs: 2\n", &flags).unwrap();
        assert_eq!(flagged.phases[0].settings.epochs, 7);
    }
}
