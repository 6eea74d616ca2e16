//! `flatout run --log-to` and `flatout train --log-to`: findings, account and telemetry of a run, and the metrics of a training, for
//! experiment trackers. They are Python packages of the program's own environment, so its Python logs them, after the program ended.
//! Nothing that fails here touches the run.

use crate::context::Context;
use crate::linted;
use clap::ValueEnum;
use flatout_core::{Message, message};
use flatout_record::{Record, SourceLine};
use flatout_report::digest::Digest;
use flatout_report::tracking;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("../../../python/flatout/_trackers.py");
const CHECK_PATIENCE: Duration = Duration::from_secs(30);
/// A tracker whose server does not answer is left after this time. Each has a process of its own, so the others do not wait for it.
const LOG_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tracker {
    Wandb,
    Mlflow,
    Tensorboard,
}

impl Tracker {
    fn name(self) -> &'static str {
        match self {
            Self::Wandb => "wandb",
            Self::Mlflow => "mlflow",
            Self::Tensorboard => "tensorboard",
        }
    }
}

/// The trackers that can be used, and the Python that has them.
pub struct Trackers {
    names: Vec<&'static str>,
    python: PathBuf,
}

/// Each once, in the order given.
fn names_of(asked: &[Tracker]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in asked.iter().map(|tracker| tracker.name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Trackers {
    /// Looks for the trackers before the program starts: hours later would be too late to install one. What is missing is
    /// told, and left out.
    pub fn check(asked: &[Tracker], command: &[OsString], context: &Context) -> Option<Self> {
        if asked.is_empty() {
            return None;
        }
        let mut names = names_of(asked);
        let python = python_of(command);
        let shown = python.display();
        let found = start(&python, "check", &names.join(","))
            .and_then(|child| finish(child, None, CHECK_PATIENCE))
            .and_then(|text| {
                Ok(serde_json::from_str::<BTreeMap<String, Vec<String>>>(
                    text.trim(),
                )?)
            });
        let missing = match found {
            Ok(missing) => missing,
            Err(error) => {
                warn(
                    context,
                    &message!(en: "nothing will be logged: `{shown}` could not look for trackers: {error}", zh: "不会写入任何跟踪器：`{shown}` 无法查找跟踪器：{error}"),
                );
                return None;
            }
        };
        names.retain(|name| {
            let packages = missing.get(*name).map(|packages| packages.join(" ")).unwrap_or_default();
            if !packages.is_empty() {
                warn(context, &message!(
                    en: "{name} is skipped: `{shown}` does not have {packages}; install it with: {shown} -m \
                    pip install {packages}",
                    zh: "已跳过 {name}：`{shown}` 中没有安装 {packages}；安装方法：{shown} -m pip install {packages}"
                ));
            }
            packages.is_empty()
        });
        (!names.is_empty()).then_some(Self { names, python })
    }

    /// Logs a record. Failures are reported, with a way to fix them.
    pub fn log(&self, folder: &Path, quiet: bool, context: &Context) {
        self.answered(self.send(folder, None, context), quiet, context);
    }

    /// Logs the training of an output folder: its record and its metrics.
    pub fn log_training(&self, output: &Path, context: &Context) {
        self.answered(
            self.send(&output.join("run"), Some(output), context),
            false,
            context,
        );
    }

    fn answered(&self, sent: Result<Vec<Answer>, Problem>, quiet: bool, context: &Context) {
        let failed = |name: &str, error: &str| {
            warn(
                context,
                &message!(en: "not logged to {name}: {error}. The record is complete.", zh: "未写入 {name}：{error}。运行记录是完整的。"),
            );
        };
        let answers = match sent {
            Ok(answers) => answers,
            Err(error) => return failed(&self.names.join(", "), &error.to_string()),
        };
        for answer in answers {
            let name = answer.tracker;
            match answer.outcome {
                Ok(place) if !quiet => {
                    eprintln!(
                        "{}",
                        context.say(&message!(en: "logged to {name}: {place}", zh: "已写入 {name}：{place}"))
                    );
                }
                Ok(_) => {}
                Err(error) => failed(name, &error.to_string()),
            }
        }
    }

    fn send(
        &self,
        folder: &Path,
        training: Option<&Path>,
        context: &Context,
    ) -> Result<Vec<Answer>, Problem> {
        let record = Record::open(folder).map_err(|error| Problem(error.to_string()))?;
        let mut digest = Digest::read(&record);
        let lines: Vec<SourceLine> = record.lines().collect();
        linted::annotate(&mut digest.diagnosis, &lines);
        let mut report = tracking::export(&digest, folder, context.language);
        if let Some(output) = training {
            add_metrics(&mut report, output);
        }
        Ok(log_to(
            &self.python,
            &self.names,
            &report.to_string(),
            LOG_PATIENCE,
        ))
    }
}

/// Logs to all trackers at once. One that hangs or dies costs the others nothing.
fn log_to(python: &Path, names: &[&'static str], report: &str, patience: Duration) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let logging: Vec<_> = names
            .iter()
            .map(|name| (*name, scope.spawn(|| log_to_one(python, name, report, patience))))
            .collect();
        let ended = logging.into_iter().map(|(tracker, thread)| Answer {
            tracker,
            outcome: thread
                .join()
                .unwrap_or_else(|_| Err(Problem("its thread failed".into()))),
        });
        ended.collect()
    })
}

/// Where it was logged.
fn log_to_one(python: &Path, name: &str, report: &str, patience: Duration) -> Result<String, Problem> {
    let begun = Instant::now();
    let text = finish(start(python, "log", name)?, Some(report.to_owned()), patience)?;
    let line = text
        .lines()
        .find_map(|line| serde_json::from_str::<Line>(line).ok());
    match line.map(|line| (line.r#where, line.error)) {
        Some((Some(place), _)) => Ok(place),
        Some((None, Some(error))) => Err(Problem(error)),
        _ if begun.elapsed() >= patience => {
            let seconds = patience.as_secs();
            Err(Problem(format!("no answer within {seconds} s")))
        }
        _ => Err(Problem("its client ended without a result".into())),
    }
}

/// Adds every number of `metrics.jsonl` as a series over the time of training, the last ones as figures, and the name of the folder.
fn add_metrics(report: &mut Value, output: &Path) {
    if let Some(name) = output.file_name() {
        report["name"] = name.to_string_lossy().into();
    }
    let text = std::fs::read_to_string(output.join("metrics.jsonl")).unwrap_or_default();
    let (mut series, mut t) = (BTreeMap::<String, Vec<(f64, f64)>>::new(), 0.0);
    for row in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        t += row["seconds"].as_f64().unwrap_or(0.0);
        let mut put = |name: String, value: &Value| {
            if let Some(value) = value.as_f64() {
                series.entry(name).or_default().push((t, value));
            }
        };
        for name in ["epoch", "loss", "rate", "samples_s"] {
            put(name.to_owned(), &row[name]);
        }
        for (score, value) in row["scores"].as_object().into_iter().flatten() {
            put(format!("validation_{score}"), value);
        }
        for (target, scores) in row["targets"].as_object().into_iter().flatten() {
            for (score, value) in scores.as_object().into_iter().flatten() {
                put(format!("validation_{score}_{target}"), value);
            }
        }
    }
    for (name, points) in series {
        if let (Some((_, last)), Some(figures)) = (points.last(), report["figures"].as_object_mut()) {
            figures.insert(format!("train/{name}"), (*last).into());
        }
        if let Some(all) = report["series"].as_array_mut() {
            all.push(json!({"key": format!("train/{name}"), "points": points}));
        }
    }
}

/// How logging to one tracker went: where it is, or why not.
struct Answer {
    tracker: &'static str,
    outcome: Result<String, Problem>,
}

/// What the script prints.
#[derive(Deserialize)]
struct Line {
    r#where: Option<String>,
    error: Option<String>,
}

#[derive(Debug)]
struct Problem(String);

impl std::fmt::Display for Problem {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

fn warn(context: &Context, message: &Message) {
    eprintln!("flatout: {}", context.say(message));
}

/// The Python of the program: its own command, that next to a launcher such as `torchrun`, else the first on the path.
fn python_of(command: &[OsString]) -> PathBuf {
    let program = Path::new(command.first().map_or("".as_ref(), OsString::as_os_str));
    let is_python = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("python") || name.starts_with("pypy")
    };
    if is_python(program) {
        return program.to_owned();
    }
    let found = if program.components().count() > 1 {
        Some(program.to_owned())
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())
    };
    let beside = found.and_then(|path| Some(path.parent()?.join("python")));
    beside
        .filter(|python| python.is_file())
        .unwrap_or_else(|| "python3".into())
}

fn start(python: &Path, what: &str, names: &str) -> Result<Child, Problem> {
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT, what, names]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Ok(command.spawn()?)
}

/// What it printed; one that takes too long is ended, and what it printed until then counts.
fn finish(mut child: Child, input: Option<String>, patience: Duration) -> Result<String, Problem> {
    let (mut to, mut from) = (child.stdin.take(), child.stdout.take());
    let writing = std::thread::spawn(move || {
        if let (Some(to), Some(input)) = (&mut to, input) {
            let _ = to.write_all(input.as_bytes());
        }
        drop(to);
    });
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = &mut from {
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let deadline = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // A daemon of a tracker may keep the pipe open: then what came so far cannot be waited for.
    let grace = Instant::now() + Duration::from_secs(5);
    while !reading.is_finished() && Instant::now() < grace {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(writing);
    if !reading.is_finished() {
        return Err(Problem("a process of a tracker did not end".into()));
    }
    Ok(reading.join().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_programs_own_python() {
        let of = |words: &[&str]| python_of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(
            of(&["/v/bin/python3.11", "train.py"]),
            Path::new("/v/bin/python3.11")
        );
        assert_eq!(of(&["python", "-m", "train"]), Path::new("python"));
        assert_eq!(of(&["./train.sh"]), Path::new("python3"));
        let folder = tempfile::tempdir().unwrap();
        for name in ["python", "torchrun"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let launcher = folder.path().join("torchrun");
        assert_eq!(
            of(&[launcher.to_str().unwrap(), "train.py"]),
            folder.path().join("python")
        );
    }

    #[test]
    fn metrics_of_a_training_are_series_and_figures() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            json!({"event": "epoch", "phase": "train", "epoch": 1, "loss": 0.5, "seconds": 2.0, "scores": {"loss": 0.6, "auc": null}}),
            json!({"event": "epoch", "phase": "train", "epoch": 2, "loss": 0.4, "seconds": 3.0, "scores": null, "targets": {}}),
        ];
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        std::fs::write(folder.path().join("metrics.jsonl"), text + "cut sh").unwrap();
        let mut report = json!({"name": "x", "figures": {}, "series": []});
        add_metrics(&mut report, folder.path());
        assert_eq!(report["figures"]["train/loss"], 0.4);
        assert_eq!(report["figures"]["train/validation_loss"], 0.6);
        let loss = &report["series"][1];
        assert_eq!(loss["key"], "train/loss");
        assert_eq!(loss["points"], json!([[2.0, 0.5], [5.0, 0.4]]));
    }

    #[test]
    fn a_tracker_that_hangs_costs_the_others_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python");
        let text = "#!/bin/sh\ncase \"$4\" in\nwandb) exec sleep 600;;\nmlflow) exit 3;;\nesac\necho '{\"tracker\": \"x\", \"where\": \"here\"}'\n";
        std::fs::write(&python, text).unwrap();
        std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let asked = [
            Tracker::Wandb,
            Tracker::Mlflow,
            Tracker::Wandb,
            Tracker::Tensorboard,
        ];
        let names = names_of(&asked);
        assert_eq!(names, ["wandb", "mlflow", "tensorboard"]);
        let begun = Instant::now();
        let answers = log_to(&python, &names, "{}", Duration::from_secs(2));
        assert!(begun.elapsed() < Duration::from_secs(60));
        let told: Vec<String> = answers
            .into_iter()
            .map(|answer| match answer.outcome {
                Ok(place) => place,
                Err(error) => error.to_string(),
            })
            .collect();
        assert_eq!(
            told,
            [
                "no answer within 2 s",
                "its client ended without a result",
                "here"
            ]
        );
    }

    #[test]
    fn one_that_does_not_end_is_left() {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        assert_eq!(
            finish(child, Some("x".into()), Duration::from_millis(50)).unwrap(),
            ""
        );
    }
}
