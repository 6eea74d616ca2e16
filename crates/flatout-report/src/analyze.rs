//! `flatout analyze`: runs, jobs and logs that others wrote, as statistics, times, errors and charts. What is not known stays
//! unknown; a log that cannot be read does not keep the others from being shown.
//!
//! - [`gpu_log`], [`sniff`]: logs of other tools, in one pass and constant memory.
//! - [`job`]: a Slurm job's records, logs and accounting, put together.
//! - [`page`]: as one HTML file; [`picture`]: as a PNG file.
//! - [`status`]: how a job stands now.
//! - [`text`]: as a person reads it.

pub mod files;
pub mod gpu_log;
pub mod job;
pub mod page;
pub mod picture;
pub mod sniff;
pub mod status;
pub mod text;
pub mod timeline;

use crate::ranks::RankRow;
use flatout_core::error::FileError;
use flatout_core::stats::{Summary, mean};
use flatout_core::{Failure, Finding, Message, Result, message};
use flatout_diagnose::analysis::time::TimeTable;
use flatout_diagnose::verdict::Verdict;
use flatout_import::ImportOptions;
use flatout_import::training_log::{EpochTime, Measured, TrainingLog};
use flatout_record::{Record, RunData, steady_epochs};
use flatout_slurm::JobAccount;
use serde::Serialize;
use sniff::Kind;
use std::io;
use std::path::{Path, PathBuf};
use timeline::Timeline;

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Analysis {
    pub schema: u32,
    /// What Slurm's accounting knows, for a job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankRow>,
    pub sections: Vec<Section>,
    /// What could not be had, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Message>,
}

#[derive(Debug, Serialize)]
pub struct JobReport {
    #[serde(flatten)]
    pub account: JobAccount,
    pub notes: Vec<Message>,
}

/// One run or one log.
#[derive(Debug, Serialize)]
pub struct Section {
    /// `record`, `gpu-log`, `training-log`.
    pub kind: &'static str,
    pub title: String,
    pub path: PathBuf,
    /// Which tool wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Timeline::is_empty")]
    pub utilisation: Timeline,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<Epochs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingLog>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Message>,
}

impl Section {
    fn new(kind: &'static str, path: &Path) -> Self {
        Self {
            kind,
            title: path.display().to_string(),
            path: path.to_owned(),
            format: None,
            verdict: None,
            utilisation: Timeline::default(),
            epochs: None,
            time: None,
            training: None,
            findings: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// How long epochs took.
#[derive(Clone, Debug, Serialize)]
pub struct Epochs {
    /// The time per epoch: the mean of all after the first, as in `report` and `compare`.
    pub mean_s: f64,
    /// Of all, with the first.
    pub seconds: Summary,
    pub slowest: u64,
    pub measured: Measured,
    #[serde(skip)]
    pub all: Vec<EpochTime>,
}

impl Epochs {
    pub fn of(all: Vec<EpochTime>) -> Option<Self> {
        let seconds: Vec<f64> = all.iter().map(|epoch| epoch.seconds).collect();
        let slowest = all.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        Some(Self {
            mean_s: mean(steady_epochs(&seconds)),
            seconds: Summary::of(&seconds)?,
            slowest: slowest.number,
            measured: all.iter().map(|epoch| epoch.measured).min()?,
            all,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub import: ImportOptions,
    /// Keep samples for a page: so many at most.
    pub keep_samples: usize,
    /// Say on stderr how far a long log is read.
    pub progress: bool,
}

/// A section, with what a page can be made of.
pub struct Read {
    pub section: Section,
    pub data: Option<RunData>,
}

/// A log of whatever kind.
pub fn log(path: &Path, options: &Options) -> Result<Read> {
    let (kind, reader) = sniff::open(path, &options.import, options.progress)?;
    match kind {
        Kind::Gpu => gpu_log::read(reader, path, options),
        Kind::Training => Ok(training_log(reader, path)),
    }
}

fn training_log(reader: Box<dyn io::Read + Send>, path: &Path) -> Read {
    let mut log = TrainingLog::from_reader(reader);
    let mut section = Section::new("training-log", path);
    let foreign = log.foreign_lines;
    if foreign > 0 {
        section.notes.push(message!(
            en: "lines that are not UTF-8: {foreign}; their numbers are read, but their text may look wrong",
            zh: "有 {foreign} 行不是 UTF-8 编码；其中的数字照常读取，文字可能显示不正确"
        ));
    }
    let back = log.backward_steps;
    if back > 0 {
        section.notes.push(message!(
            en: "the clock jumped back {back} times; no time is measured across a jump",
            zh: "时间戳有 {back} 次倒退；不跨越倒退处计算时间"
        ));
    }
    if let Some(reason) = &log.broken_off {
        section
            .notes
            .push(message!(en: "failed to read the log to the end: {reason}", zh: "日志未能读完：{reason}"));
    }
    section.epochs = Epochs::of(std::mem::take(&mut log.times.epochs));
    section.training = Some(log);
    Read { section, data: None }
}

/// A run's record.
pub fn record(record: &Record) -> Read {
    let data = record.load();
    let mut section = Section::new("record", record.folder());
    section.title = record.info.id.clone();
    let diagnosis = flatout_diagnose::diagnose(&data);
    section.verdict = (!data.samples.is_empty()).then(|| Verdict::of(&data.info, &data.samples));
    for sample in &data.samples {
        section.utilisation.add(sample);
    }
    section.epochs = Epochs::of(epochs_of(&data));
    let is_empty = data.samples.is_empty() && data.steps.is_empty();
    section.time = (!is_empty && !diagnosis.time.rows.is_empty()).then_some(diagnosis.time);
    section.findings = diagnosis.findings;
    section.training = Some(TrainingLog {
        problems: files::problems_of(&data),
        ..TrainingLog::default()
    })
    .filter(|log| !log.problems.list.is_empty());
    if data.samples.is_empty() {
        section
            .notes
            .push(message!(en: "the record contains no samples", zh: "记录中没有采样数据"));
    }
    if record.info.exit.is_none() {
        section
            .notes
            .push(message!(en: "the run has not ended, or was killed", zh: "运行尚未结束，或被强行终止"));
    }
    let lost = data.skipped.iter().filter(|skipped| !skipped.torn).count();
    if lost > 0 {
        section.notes.push(
            message!(en: "{lost} lines of the record could not be read", zh: "记录中有 {lost} 行无法读取"),
        );
    }
    Read {
        section,
        data: Some(data),
    }
}

fn epochs_of(data: &RunData) -> Vec<EpochTime> {
    let epoch = |epoch: flatout_record::EpochTime| EpochTime {
        number: epoch.number,
        seconds: epoch.seconds,
        measured: match epoch.measured {
            true => Measured::Said,
            false => Measured::Stamps,
        },
    };
    data.epoch_times().into_iter().map(epoch).collect()
}

/// A path is a log or a record's folder, anything else a run's name, its id or `last`.
pub fn named(name: &str, options: &Options) -> Result<Read> {
    let path = Path::new(if name == "-" { "/dev/stdin" } else { name });
    // A pipe or a device is read like a file.
    if path.exists() && !path.is_dir() {
        return log(path, options);
    }
    let found = flatout_record::find(name);
    // Something with a slash or an extension was meant to be a file.
    if found.is_err()
        && (name.contains('/') || path.extension().is_some())
        && let Err(source) = path.metadata()
    {
        return Err(
            Failure::from(FileError::reading(path, source)).with_hint(message!(
                en: "give the path of a log or the name of a run (see `flatout runs`)",
                zh: "请给出日志的路径，或一个运行记录（用 flatout runs 列出）"
            )),
        );
    }
    Ok(record(&found?))
}

#[cfg(test)]
mod tests;
