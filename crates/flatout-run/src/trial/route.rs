//! How a setting reaches the program: `{batch_size}` in its command, a value of its configuration file, a flag of our own trainer,
//! or else the probe. And whether it arrived.

use crate::applied::reason_for;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Explain, Message, explained, message};
use flatout_diagnose::Analysis;
use flatout_telemetry::record::RunData;
use flatout_tune::TuneError;
use flatout_tune::config_file::ConfigFile;
use flatout_tune::settings;
use flatout_tune::trial::{Measurement, Settings};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum RouteError {
    /// `{colour}` is nothing that can be tuned.
    Placeholder {
        name: String,
    },
    /// `--set` names a value that the file does not have, or that is no setting.
    NoValue {
        path: PathBuf,
        key: String,
        known: String,
    },
    /// The command does not name the configuration file.
    NotNamed {
        path: PathBuf,
    },
    /// `--set` without `--config`.
    NoFile,
    Config(TuneError),
}

impl Explain for RouteError {
    fn message(&self) -> Message {
        match self {
            Self::Placeholder { name } => {
                message!(en: "`{{{name}}}` is no setting that can be tuned", zh: "`{{{name}}}` 不是可调的设置")
            }
            Self::NoValue { path, key, .. } => {
                let path = path.display();
                message!(en: "`{path}` has no setting `{key}`", zh: "`{path}` 中没有设置 `{key}`")
            }
            Self::NotNamed { path } => {
                let path = path.display();
                message!(en: "the command does not name `{path}`", zh: "命令中没有出现 `{path}`")
            }
            Self::NoFile => {
                message!(en: "--set needs the file: --config FILE", zh: "--set 需要配置文件：--config FILE")
            }
            Self::Config(error) => error.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::Placeholder { .. } => {
                let known = settings::SETTINGS
                    .iter()
                    .map(|setting| setting.name)
                    .collect::<Vec<_>>()
                    .join(", ");
                Some(
                    message!(en: "placeholders are: {known}; write {{{{ for a brace of the program's own", zh: "占位符有：{known}；程序自身的花括号请写成 {{{{"),
                )
            }
            Self::NoValue { known, .. } => Some(message!(en: "it has: {known}", zh: "文件中有：{known}")),
            Self::NotNamed { .. } => Some(
                message!(en: "put the file, as given to --config, or {{config}} into the command", zh: "请在命令中写上 --config 给出的文件，或 {{config}}"),
            ),
            Self::Config(error) => error.hint(),
            Self::NoFile => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(RouteError);

/// A configuration file whose values are settings.
struct Config {
    path: PathBuf,
    file: ConfigFile,
    /// The setting's key, and the value's path in the file.
    values: Vec<(&'static str, String)>,
}

pub struct Route {
    command: Vec<OsString>,
    /// Settings with a placeholder, and the value that stands behind `=` in it.
    placeholders: Vec<(&'static str, Option<String>)>,
    config: Option<Config>,
    own: bool,
}

/// One trial's command, and what the probe has to apply.
pub struct Prepared {
    pub command: Vec<OsString>,
    pub apply: Vec<String>,
    /// Where our own trainer keeps its record.
    pub own_record: Option<PathBuf>,
}

/// What our own trainer takes as a flag.
const OWN_FLAGS: [(&str, &str); 3] = [
    ("loader.batch_size", "--batch-size"),
    ("amp", "--amp"),
    ("step.accumulation", "--gradient-accumulation-steps"),
];

impl Route {
    pub fn new(command: Vec<OsString>, config: Option<&Path>, set: &[String]) -> Result<Self, RouteError> {
        let mut placeholders: Vec<(&'static str, Option<String>)> = Vec::new();
        for part in command.iter().filter_map(|part| part.to_str()) {
            for (name, value) in names(part) {
                if name == "config" {
                    continue;
                }
                let setting = settings::find(&name).ok_or(RouteError::Placeholder { name })?;
                if !placeholders.iter().any(|(key, _)| *key == setting.key) {
                    placeholders.push((setting.key, value));
                }
            }
        }
        let config = match (config, set.is_empty()) {
            (None, true) => None,
            (None, false) => return Err(RouteError::NoFile),
            (Some(path), _) => Some(Config::new(path, set, &command)?),
        };
        let is = |at: usize, name: &str| {
            command
                .get(at)
                .is_some_and(|part| Path::new(part).file_name().is_some_and(|file| file == name))
        };
        let own = is(0, "flatout") && is(1, "train");
        Ok(Self {
            command,
            placeholders,
            config,
            own,
        })
    }

    pub fn is_own(&self) -> bool {
        self.own
    }

    /// The value each placeholder begins with; one without a value of its own is asked for.
    pub fn start(&self, ask: &dyn Fn(&'static str) -> Option<String>) -> Settings {
        let values = self
            .placeholders
            .iter()
            .filter_map(|(key, value)| Some(((*key).to_owned(), value.clone().or_else(|| ask(key))?)));
        values.collect()
    }

    pub fn prepare(&self, settings: &Settings, scratch: &Path) -> Result<Prepared, RouteError> {
        let mut left = settings.clone();
        let mut command = self.command.clone();
        if let Some(config) = &self.config {
            let copy = config.write(&mut left, scratch)?;
            let named = config.path.as_os_str();
            for part in &mut command {
                if part.as_os_str() == named {
                    *part = copy.clone().into();
                } else if let Some(text) = part.to_str() {
                    *part = text
                        .replace("{config}", &copy.to_string_lossy())
                        .replace(&*named.to_string_lossy(), &copy.to_string_lossy())
                        .into();
                }
            }
        }
        for part in &mut command {
            if let Some(text) = part.to_str().filter(|text| text.contains('{')) {
                *part = filled(text, settings).into();
            }
        }
        for (key, _) in &self.placeholders {
            left.0.remove(*key);
        }
        let mut own_record = None;
        if self.own {
            for (key, flag) in OWN_FLAGS {
                if let Some(value) = left.0.remove(key) {
                    put(&mut command, flag, value.into());
                }
            }
            let output = scratch.join("out");
            own_record = Some(output.join("run"));
            put(&mut command, "--output-dir", output.into_os_string());
        }
        Ok(Prepared {
            command,
            apply: left
                .0
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            own_record,
        })
    }

    /// Settings that did not arrive, with the reason.
    pub fn not_in_force(
        &self,
        settings: &Settings,
        data: &RunData,
        measured: &Measurement,
    ) -> Vec<(String, Message)> {
        let analysis = Analysis::new(data);
        let mut all = Vec::new();
        for (key, value) in &settings.0 {
            let routed = self.placeholders.iter().any(|(known, _)| known == key)
                || self.config.as_ref().is_some_and(|config| config.has(key));
            let why = if self.own {
                (!OWN_FLAGS.iter().any(|(known, _)| known == key)).then(
                    || message!(en: "flatout train has no such setting", zh: "flatout train 没有这个设置"),
                )
            } else if routed {
                ignored(key, value, &analysis, measured)
            } else {
                reason_for(key, data)
            };
            if let Some(why) = why {
                all.push((key.clone(), why));
            }
        }
        all
    }

    /// The configuration file with the result in it: the file, what it says now, what it would say.
    pub fn patched(&self, settings: &Settings) -> Option<(&Path, &str, String)> {
        let config = self.config.as_ref()?;
        Some((
            &config.path,
            &config.file.text,
            config.file.with(&config.changes(settings)),
        ))
    }

    /// Keys that the command or the file carries; the others reach the program through `--apply`.
    pub fn carries(&self, key: &str) -> bool {
        self.own
            || self.placeholders.iter().any(|(known, _)| *known == key)
            || self.config.as_ref().is_some_and(|config| config.has(key))
    }

    /// The command with the settings' values in its placeholders.
    pub fn filled(&self, settings: &Settings) -> Vec<String> {
        self.command
            .iter()
            .map(|part| filled(&part.to_string_lossy(), settings))
            .collect()
    }
}

/// Gives a flag this value, in the place of what the command says: our trainer takes each flag once.
fn put(command: &mut Vec<OsString>, flag: &str, value: OsString) {
    let same = |part: &OsString| {
        part.to_string_lossy()
            .split('=')
            .next()
            .unwrap_or_default()
            .replace('_', "-")
            == flag
    };
    while let Some(at) = command.iter().position(same) {
        let alone = !command[at].to_string_lossy().contains('=');
        command.remove(at);
        if alone && at < command.len() {
            command.remove(at);
        }
    }
    command.extend([flag.into(), value]);
}

/// A loader that has another size than the one asked for has not heard of it; nor has a program whose steps have another size.
fn ignored(key: &str, value: &str, analysis: &Analysis, measured: &Measurement) -> Option<Message> {
    let loader = analysis.train_loader();
    let counted = measured
        .samples
        .map(|samples| (samples as f64 / measured.steps.max(1) as f64).round() as u64);
    let has = match key {
        "loader.batch_size" => loader.and_then(|loader| loader.batch_size).or(counted)?,
        "loader.num_workers" => loader?.num_workers?,
        _ => return None,
    };
    (has.to_string() != value)
        .then(|| message!(en: "the program was given {value} and used {has}", zh: "给程序的值是 {value}，它用的是 {has}"))
}

impl Config {
    fn new(path: &Path, set: &[String], command: &[OsString]) -> Result<Self, RouteError> {
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

    fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == key)
    }

    fn changes(&self, settings: &Settings) -> Vec<(String, String)> {
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
    fn write(&self, left: &mut Settings, scratch: &Path) -> Result<PathBuf, RouteError> {
        let text = self.file.with(&self.changes(left));
        let copy = scratch.join(self.path.file_name().unwrap_or_default());
        write_atomically(&copy, text.as_bytes())
            .map_err(|error: FileError| RouteError::Config(error.into()))?;
        left.0.retain(|key, _| !self.has(key));
        Ok(copy)
    }
}

/// The names in `{name}` and `{name=value}`; `{{` is a brace.
fn names(text: &str) -> Vec<(String, Option<String>)> {
    let text = text.replace("{{", "");
    let inside = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(inside, _)| inside);
    let plain = inside.filter(|inside| {
        !inside.is_empty()
            && inside
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.=".contains(c))
    });
    plain
        .map(|inside| {
            inside
                .split_once('=')
                .map_or((inside.to_owned(), None), |(name, value)| {
                    (name.to_owned(), Some(value.to_owned()))
                })
        })
        .collect()
}

fn filled(text: &str, settings: &Settings) -> String {
    let mut text = text.to_owned();
    for (name, value) in names(&text.clone()) {
        let mark = value.map_or_else(|| format!("{{{name}}}"), |value| format!("{{{name}={value}}}"));
        if let Some(value) = settings::find(&name).and_then(|setting| settings.get(setting.key)) {
            text = text.replace(&mark, value);
        }
    }
    text.replace("{{", "{").replace("}}", "}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(parts: &[&str]) -> Vec<OsString> {
        parts.iter().map(OsString::from).collect()
    }

    #[test]
    fn placeholders_are_filled_and_the_rest_is_applied() {
        let route = Route::new(
            command(&["train", "--batch-size", "{batch_size=64}", "--json={{}}"]),
            None,
            &[],
        )
        .unwrap();
        let mut settings = route.start(&|_| None);
        assert_eq!(settings.to_string(), "loader.batch_size=64");
        settings.set("amp", "bf16");
        let prepared = route.prepare(&settings, Path::new("/tmp")).unwrap();
        assert_eq!(
            prepared.command,
            command(&["train", "--batch-size", "64", "--json={}"])
        );
        assert_eq!(prepared.apply, ["amp=bf16"]);
        assert!(matches!(
            Route::new(command(&["x", "{colour}"]), None, &[]),
            Err(RouteError::Placeholder { .. })
        ));
    }

    #[test]
    fn a_configuration_file_is_copied_and_never_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "train:\n  batch_size: 8 # small\n").unwrap();
        let named = path.to_string_lossy().into_owned();
        let route = Route::new(
            command(&["train", "--config", &named]),
            Some(&path),
            &["train.batch_size".into()],
        )
        .unwrap();
        let mut settings = Settings::default();
        settings.set("loader.batch_size", 32);
        let scratch = tempfile::tempdir().unwrap();
        let prepared = route.prepare(&settings, scratch.path()).unwrap();
        let copy = PathBuf::from(&prepared.command[2]);
        assert_ne!(copy, path);
        assert_eq!(
            std::fs::read_to_string(copy).unwrap(),
            "train:\n  batch_size: 32 # small\n"
        );
        assert!(prepared.apply.is_empty());
        assert!(std::fs::read_to_string(&path).unwrap().contains("batch_size: 8"));
        assert!(matches!(
            Route::new(command(&["train", &named]), Some(&path), &["train.colour".into()]),
            Err(RouteError::NoValue { .. })
        ));
        assert!(matches!(
            Route::new(command(&["train"]), Some(&path), &[]),
            Err(RouteError::NotNamed { .. })
        ));
    }

    #[test]
    fn our_own_trainer_takes_flags() {
        let words = [
            "/usr/bin/flatout",
            "train",
            "--batch_size=8",
            "--data",
            "d",
            "--output-dir",
            "mine",
        ];
        let route = Route::new(command(&words), None, &[]).unwrap();
        let mut settings = Settings::default();
        settings.set("loader.batch_size", 32);
        let prepared = route.prepare(&settings, Path::new("/scratch")).unwrap();
        assert!(prepared.command.contains(&"--batch-size".into()) && prepared.apply.is_empty());
        assert!(
            !prepared.command.contains(&"--batch_size=8".into())
                && !prepared.command.contains(&"mine".into())
        );
        assert_eq!(
            prepared.own_record.as_deref(),
            Some(Path::new("/scratch/out/run"))
        );
    }
}
