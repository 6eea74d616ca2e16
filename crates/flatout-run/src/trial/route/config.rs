//! A configuration file that carries settings: a copy of it, with other values, takes its place in a trial's command.

use super::RouteError;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_tune::config_file::ConfigFile;
use flatout_tune::trial::Settings;
use flatout_vocabulary::settings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A configuration file whose values are settings.
pub(super) struct Config {
    pub path: PathBuf,
    pub file: ConfigFile,
    /// The setting's key, and the value's path in the file.
    values: Vec<(&'static str, String)>,
}

impl Config {
    pub fn new(path: &Path, set: &[String], command: &[OsString]) -> Result<Self, RouteError> {
        let file = ConfigFile::read(path).map_err(RouteError::Config)?;
        let named = path.to_string_lossy();
        if !command.iter().any(|part| {
            part.to_string_lossy().contains(&*named) || part.to_string_lossy().contains("{config}")
        }) {
            return Err(RouteError::NotNamed {
                path: path.to_owned(),
            });
        }
        let missing = |key: &str| RouteError::NoValue {
            path: path.to_owned(),
            key: key.to_owned(),
            known: file
                .values
                .iter()
                .filter(|value| settings::find(value.name()).is_some())
                .map(|value| value.path.clone())
                .collect::<Vec<_>>()
                .join(", "),
        };
        let mut values = Vec::new();
        if set.is_empty() {
            // Everything in the file that is a setting by its name.
            for value in &file.values {
                if let Some(setting) = settings::find(value.name())
                    .filter(|setting| !values.iter().any(|(key, _)| *key == setting.key))
                {
                    values.push((setting.key, value.path.clone()));
                }
            }
        }
        for key in set {
            let value = file.get(key).ok_or_else(|| missing(key))?;
            let setting = settings::find(value.name()).ok_or_else(|| missing(key))?;
            values.push((setting.key, key.clone()));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            values,
        })
    }

    pub fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == key)
    }

    pub fn changes(&self, settings: &Settings) -> Vec<(String, String)> {
        let quoted = self
            .path
            .extension()
            .is_some_and(|end| end == "json" || end == "toml");
        let spelt = |value: &str| match value {
            "on" => "true".to_owned(),
            "off" => "false".to_owned(),
            text if quoted && text.parse::<f64>().is_err() => format!("\"{text}\""),
            text => text.to_owned(),
        };
        self.values
            .iter()
            .filter_map(|(key, path)| Some((path.clone(), spelt(settings.get(key)?))))
            .collect()
    }

    /// A copy with the settings in it, beside the other things of the trial; what it carries is taken out of `left`.
    pub fn write(&self, left: &mut Settings, scratch: &Path) -> Result<PathBuf, RouteError> {
        let text = self.file.with(&self.changes(left));
        let copy = scratch.join(self.path.file_name().unwrap_or_default());
        write_atomically(&copy, text.as_bytes())
            .map_err(|error: FileError| RouteError::Config(error.into()))?;
        left.0.retain(|key, _| !self.has(key));
        Ok(copy)
    }
}
