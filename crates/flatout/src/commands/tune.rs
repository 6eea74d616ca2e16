//! `flatout tune -- COMMAND…`

mod show;
mod source;

use crate::context::Context;
use crate::output::write_stdout;
use crate::usage::Invalid;
use clap::Args;
use flatout_core::files::{edit, write_atomically};
use flatout_core::interrupt::Interrupt;
use flatout_core::{Failure, Message, Result, message};
use flatout_lint::patch::Patch;
use flatout_run::trial::{ProgramTrial, Route, adopt_orphans};
use flatout_run::{Options as RunOptions, run_name};
use flatout_tune::TuneError;
use flatout_tune::advise::{self, Question};
use flatout_tune::limits::Limits;
use flatout_tune::machine::Machine;
use flatout_tune::objective::Objective;
use flatout_tune::search::{self, Found, Options};
use flatout_tune::session::{self, Lock, Remembering};
use flatout_tune::trial::{Plan, Settings};
use flatout_vocabulary::settings;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout tune -- python train.py                       any PyTorch program, unchanged
  flatout tune --knobs num_workers,batch_size=32..2048 -- python train.py
  flatout tune -- ./train --batch-size {batch_size=64}  any program that reports its steps
  flatout tune --config train.yaml --set train.batch_size --write -- python train.py --config train.yaml
  flatout tune --write -- python train.py               also write the result to the source
  flatout tune --resume -- python train.py              continue after Ctrl-C
  flatout tune -- flatout train --data data/stocks

Without --write, none of your files are changed. Checkpoints of trials are deleted; those of earlier runs stay.";

/// A trial continues until its interval is this narrow, or for at most this multiple of the requested time.
const NOISE: f64 = 0.03;
const SETTLE: f64 = 3.0;

#[derive(Args)]
pub struct Arguments {
    /// Try only these knobs, optionally with a range: num_workers,batch_size=32..4096,amp
    #[arg(long, value_name = "KNOBS", value_delimiter = ',')]
    knobs: Vec<String>,
    /// What to maximize: samples/s, energy (samples per joule) or cost (samples per unit of money)
    #[arg(long, value_name = "WHAT", default_value = "samples/s")]
    objective: String,
    /// Price per hour, for --objective cost
    #[arg(long, value_name = "PRICE")]
    price: Option<f64>,
    /// Start no further trial after this time: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    budget: Duration,
    /// Maximum number of trials
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=200))]
    max_trials: u32,
    /// Measure each trial for at least this many seconds, and up to three times as long if the rate varies
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    trial_seconds: f64,
    /// Treat the program as hung after this long without a step: 90s, 5m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_time)]
    patience: Duration,
    /// Scale the learning rate with the batch size, in the trials and in the result
    #[arg(long)]
    scale_lr: bool,
    /// The program's configuration file; trials use a copy with changed values
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A value in that file to tune, by its path [default: all known names]
    #[arg(long, value_name = "KEY")]
    set: Vec<String>,
    /// Write the result to the configuration file and the source; the original files are kept as *.flatout-backup
    #[arg(long)]
    write: bool,
    /// Initial settings, under the names of `flatout run --apply`
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    start: Vec<String>,
    /// Continue the last search of this command
    #[arg(long)]
    resume: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments, as you would type them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn about() -> Message {
    message!(en: "Try better settings on a program and keep those that measurably help", zh: "在程序上试验更好的设置，只保留实测有效的")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let _lock = Lock::take(&std::env::temp_dir())?;
    let machine = Machine::here();
    let route = Route::new(
        arguments.command.clone(),
        arguments.config.as_deref(),
        &arguments.set,
    )?;
    let options = options(&arguments, &route, &machine)?;
    let interrupt = Interrupt::catch();
    adopt_orphans();
    let stop = || interrupt.came();
    let folder = session_folder(&arguments.command);
    folder.parent().into_iter().for_each(session::sweep);
    if !arguments.resume {
        let _ = std::fs::remove_dir_all(&folder);
    }
    let mut program = ProgramTrial::new(route, &folder.join("trials"), &stop);
    let mut trial = Remembering::open(&mut program, &folder, arguments.resume)?;
    // `.flatout/tune/NAME`.
    folder
        .ancestors()
        .nth(2)
        .into_iter()
        .for_each(flatout_record::hide_from_git);
    if arguments.resume {
        let known = trial.remembered();
        eprintln!("{}", context.say(&message!(en: "{known} trials are known from before and are not repeated", zh: "已有 {known} 次试验的结果，不再重复")));
    }
    let found = search::search(&options, &machine, &mut trial, &mut |progress| {
        show::progress(&progress, &options, context)
    })?;
    let route = Route::new(
        arguments.command.clone(),
        arguments.config.as_deref(),
        &arguments.set,
    )?;
    let patch = if found.changed {
        source::patch(&found, &route)?
    } else {
        Patch::default()
    };
    let json = show::json(&found, &options, &route, &patch);
    write_atomically(&folder.join("result.json"), json.as_bytes())?;
    let shown = if arguments.json {
        json
    } else {
        show::text(&found, &options, &route, &patch, context)
    };
    write_stdout(shown.as_bytes());
    if arguments.write {
        write(&found, &route, &patch, context)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &Arguments, route: &Route, machine: &Machine) -> Result<Options> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(arguments.trial_seconds) {
        return Err(Failure::new(
            message!(en: "the value must be above 0 seconds", zh: "秒数必须大于 0"),
        ));
    }
    // A placeholder without a value begins where advice would.
    let advice = advise::advise(machine, &Question::default());
    let ask = |key: &'static str| {
        advice
            .iter()
            .find(|advice| advice.key == key)
            .map(|advice| advice.value.clone())
    };
    Ok(Options {
        objective: Objective::parse(&arguments.objective, arguments.price)?,
        most_trials: arguments.max_trials as usize,
        budget: arguments.budget,
        plan: Plan {
            warm_up_steps: 10,
            steps: 40,
            seconds: arguments.trial_seconds,
            longest_s: 20f64.max(arguments.trial_seconds),
            noise: NOISE,
            settle_s: SETTLE * arguments.trial_seconds,
            patience_s: arguments.patience.as_secs_f64(),
            ..Plan::default()
        },
        scale_learning_rate: arguments.scale_lr,
        limits: Limits::parse(&arguments.knobs)?,
        start: start(&arguments.start, route.start(&ask))?,
    })
}

/// The placeholders' first values, with those of `--start` over them.
fn start(pairs: &[String], mut settings: Settings) -> Result<Settings> {
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let setting = settings::find(name).filter(|_| !value.is_empty());
        let setting = setting.ok_or_else(|| TuneError::UnknownKnob { name: pair.clone() })?;
        settings.set(setting.key, value.trim());
    }
    Ok(settings)
}

/// `$FLATOUT_HOME/tune/<hash>`: one folder for a command in a place, so that --resume finds it.
fn session_folder(command: &[OsString]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    std::env::current_dir().ok().hash(&mut hasher);
    let home = std::env::var_os("FLATOUT_HOME").map_or_else(|| PathBuf::from(".flatout"), PathBuf::from);
    home.join("tune").join(format!(
        "{}-{:08x}",
        plain(&run_name(&RunOptions::new(command.to_vec()))),
        hasher.finish() as u32
    ))
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || "_-".contains(*c))
        .take(40)
        .collect()
}

/// Into the configuration file, where there is one, and into the source.
fn write(found: &Found, route: &Route, patch: &Patch, context: &Context) -> Result<()> {
    let config = route
        .patched(&found.settings)
        .filter(|(_, before, after)| before != after);
    if config.is_none() && patch.files.is_empty() {
        eprintln!(
            "{}",
            context.say(
                &message!(en: "nothing to write: no file contains these settings, or \
        they already have these values", zh: "无需写入：没有文件包含这些值，或已是这些值")
            )
        );
    }
    if let Some((path, before, after)) = config {
        let backup = edit(path, before.as_bytes(), after.as_bytes())?;
        let (path, backup) = (path.display(), backup.display());
        eprintln!("{}", context.say(&message!(en: "wrote {path}; the original is saved as {backup}", zh: "已写入 {path}；原文件保存为 {backup}")));
    }
    source::write(patch, context)
}

pub(super) fn parse_time(text: &str) -> std::result::Result<Duration, Invalid> {
    let (number, unit) = text.trim().split_at(
        text.trim()
            .trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .len(),
    );
    let factor = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ if !number.is_empty() => {
            return Err(Invalid(message!(
                en: "unknown unit of time `{unit}`; expected 90s, 10m or 1h",
                zh: "没有时间单位 `{unit}`；应写成 90s、10m 或 1h"
            )));
        }
        _ => f64::NAN,
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * factor);
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0 && *seconds < 1e7);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        Invalid(message!(en: "expected a time such as 90s, 10m or 1h", zh: "应为时间，如 90s、10m 或 1h"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert!(parse_time("-5s").is_err() && parse_time("soon").is_err() && parse_time("1y").is_err());
    }
}
