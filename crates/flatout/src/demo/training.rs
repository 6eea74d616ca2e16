//! One of the demo's two trainings: the trainer that `flatout train` runs, stopped after some seconds.

use crate::context::Context;
use flatout_core::text::clear_line;
use flatout_core::{Result, interrupt, message, units};
use flatout_train::settings::Values;
use flatout_train::{Configuration, Report, Trainer};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What `flatout train` would be given.
#[derive(Clone)]
pub struct Settings {
    values: Values,
    output: PathBuf,
}

impl Settings {
    pub fn new(folder: &Path, name: &str) -> Self {
        let values = Values::from([("data", folder.join("data").display().to_string())]);
        Self {
            values,
            output: PathBuf::new(),
        }
        .renamed(folder, name)
    }

    /// The same, with results in another folder.
    pub fn renamed(&self, folder: &Path, name: &str) -> Self {
        let output = folder.join(name);
        let mut same = self.clone().with("output_dir", &output.display().to_string());
        same.output = output;
        same
    }

    pub fn with(mut self, setting: &'static str, value: &str) -> Self {
        self.values.insert(setting, value.to_owned());
        self
    }

    pub fn value(&self, setting: &str) -> Option<&str> {
        self.values.get(setting).map(String::as_str)
    }

    pub fn output(&self) -> &Path {
        &self.output
    }

    pub fn flags(&self) -> String {
        let flags = self
            .values
            .iter()
            .map(|(name, value)| format!("--{} {value}", name.replace('_', "-")));
        flags.collect::<Vec<_>>().join(" ")
    }
}

pub struct Training {
    pub device: String,
    pub seconds: f64,
}

/// More epochs than a demo has time for: the clock ends it.
const EPOCHS: &str = "1000000";

impl Training {
    /// `None` when the user stopped it.
    pub fn run(settings: &Settings, seconds: f64, context: &Context) -> Result<Option<Self>> {
        // Set by the clock as well; the trainer then finishes its step and saves.
        let stop = interrupt::flag();
        stop.store(interrupt::came(), Ordering::Relaxed);
        // The parsed data of a demo is not worth keeping.
        let values = settings
            .clone()
            .with("epochs", EPOCHS)
            .with("cache", "false")
            .values;
        let configuration = Configuration::read(None, &values)?;
        let moving = std::io::stderr().is_terminal();
        let mut began: Option<Instant> = None;
        let mut device_name = String::new();
        let mut watch = |report: &Report| {
            match report {
                Report::Start { device, .. } => {
                    began = Some(Instant::now());
                    device_name.clone_from(device);
                }
                Report::Steps { samples_s, .. } if moving => {
                    let left = (seconds - began.map_or(0.0, |began| began.elapsed().as_secs_f64())).max(0.0);
                    let rate = units::count(*samples_s);
                    let text = message!(en: "{rate} samples/s, {left:.0} s left", zh: "{rate} 样本/秒，剩余 {left:.0} 秒");
                    eprint!("{}     {}", clear_line(), context.say(&text));
                }
                _ => {}
            }
            if began.is_some_and(|began| began.elapsed().as_secs_f64() >= seconds) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let outcome = Trainer::new(&configuration, stop, &mut watch)?.run()?;
        if moving {
            eprint!("{}", clear_line());
            let _ = std::io::stderr().flush();
        }
        if interrupt::came() {
            return Ok(None);
        }
        Ok(Some(Self {
            device: device_name,
            seconds: outcome.seconds,
        }))
    }
}
