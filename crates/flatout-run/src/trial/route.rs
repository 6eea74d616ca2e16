//! How a setting reaches the program: `{batch_size}` in its command, a value of its configuration file, a flag of our own trainer,
//! or else the probe. And whether it arrived.

mod config;
mod error;
mod placeholders;

pub use error::RouteError;

use crate::applied::reason_for;
use config::Config;
use flatout_core::{Message, message};
use flatout_diagnose::Analysis;
use flatout_diagnose::analysis::{Device, compiles};
use flatout_record::RunData;
use flatout_tune::trial::{Measurement, Settings};
use flatout_vocabulary::settings;
use placeholders::{filled, names};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
                not_ours(key, &analysis)
            } else if routed {
                ignored(key, value, &analysis, measured)
            } else {
                reason_for(key, data).or_else(|| uncompiled(key, &analysis))
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

    /// The command with the settings' values in its placeholders, or as flags of our trainer; without its secrets.
    pub fn filled(&self, settings: &Settings) -> Vec<String> {
        let mut command = self.command.clone();
        for (key, flag) in OWN_FLAGS.iter().filter(|_| self.own) {
            if let Some(value) = settings.get(key) {
                put(&mut command, flag, value.into());
            }
        }
        let words: Vec<String> = command
            .iter()
            .map(|part| filled(&part.to_string_lossy(), settings))
            .collect();
        flatout_core::secrets::redact(&words)
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

/// Our trainer has few flags, and computes in f32 on a CPU.
fn not_ours(key: &str, analysis: &Analysis) -> Option<Message> {
    if !OWN_FLAGS.iter().any(|(known, _)| *known == key) {
        return Some(message!(en: "flatout train has no such setting", zh: "flatout train 没有这个设置"));
    }
    (key == "amp" && analysis.device() != Device::Cuda).then(
        || message!(en: "flatout train computes in f32 on a CPU", zh: "flatout train 在 CPU 上用 f32 计算"),
    )
}

/// A model that PyTorch failed to compile ran as it is.
fn uncompiled(key: &str, analysis: &Analysis) -> Option<Message> {
    if key != "compile" || analysis.facts.switch("compile.applied") != Some(false) {
        return None;
    }
    Some(match compiles::errors(analysis.data).message {
        Some(error) => message!(en: "PyTorch could not compile it: {error}", zh: "PyTorch 无法编译：{error}"),
        None => {
            message!(en: "PyTorch could not compile it (TORCH_LOGS=dynamo shows why)", zh: "PyTorch 无法编译（TORCH_LOGS=dynamo 可查看原因）")
        }
    })
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
        .then(|| message!(en: "the program was given {value} but used {has}", zh: "给程序的值是 {value}，它用的是 {has}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(parts: &[&str]) -> Vec<OsString> {
        parts.iter().map(OsString::from).collect()
    }

    #[test]
    fn fills_placeholders_and_applies_the_rest() {
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
