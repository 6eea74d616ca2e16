//! How a job stands now: the queue's word, the newest of its record, the last lines of its log.

use super::job;
use crate::text::width::{cut, printable};
use flatout_core::{Kind, Language, Message, Result, message, units};
use flatout_record::{Record, RunData};
use flatout_slurm::{self as slurm, QueuedJob, SlurmError};
use serde::Serialize;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub const SCHEMA: u32 = 1;
/// What "now" is, for rates.
const RECENT_S: f64 = 60.0;
const LOG_LINES: usize = 5;
const LOG_BYTES: u64 = 16 << 10;

#[derive(Debug, Serialize)]
pub struct Status {
    pub schema: u32,
    pub jobs: Vec<JobStatus>,
}

#[derive(Debug, Serialize)]
pub struct JobStatus {
    #[serde(flatten)]
    pub queue: QueuedJob,
    pub over: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Live>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log_end: Vec<String>,
}

/// What a record tells while it is written.
#[derive(Debug, Serialize)]
pub struct Live {
    pub run: String,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The first cause, or the first word on the run as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Message>,
}

impl Status {
    pub fn over(&self) -> bool {
        self.jobs.iter().all(|job| job.over)
    }

    /// Whether every job ended well.
    pub fn completed(&self) -> bool {
        self.jobs.iter().all(|job| job.queue.state == "COMPLETED")
    }
}

/// The controller forgets a job minutes after its end; the accounting does not.
pub fn status(job_id: &str) -> Result<Status> {
    let jobs = match slurm::queued(job_id) {
        Ok(jobs) if !jobs.is_empty() => jobs,
        Ok(_) | Err(SlurmError::UnknownJob { .. }) => from_accounting(job_id)?,
        Err(error) => return Err(error.into()),
    };
    let jobs = jobs.into_iter().map(of).collect();
    Ok(Status { schema: SCHEMA, jobs })
}

fn from_accounting(job_id: &str) -> Result<Vec<QueuedJob>> {
    let accounts = slurm::account(job_id)?;
    let queued = accounts.into_iter().map(|account| QueuedJob {
        id: account.id,
        name: account.name,
        state: account.state,
        run_s: account.elapsed_s,
        limit_s: account.limit_s,
        start: account.start,
        nodes: account.node_list,
        ..QueuedJob::default()
    });
    Ok(queued.collect())
}

fn of(queue: QueuedJob) -> JobStatus {
    let records = job::records(&queue.id);
    JobStatus {
        over: slurm::is_over(&queue.state),
        runs: records.iter().map(live).collect(),
        log_end: queue.log.as_deref().map(log_end).unwrap_or_default(),
        queue,
    }
}

fn live(record: &Record) -> Live {
    let data = record.load();
    let diagnosis = flatout_diagnose::diagnose(&data);
    let finding = diagnosis
        .findings
        .iter()
        .find(|finding| finding.kind == Kind::Cause)
        .or(diagnosis.findings.first());
    Live {
        run: record.info.id.clone(),
        steps: data.steps.iter().map(|tick| tick.steps).sum(),
        steps_per_s: rate(&data),
        utilisation: utilisation(&data),
        loss: data.steps.iter().rev().find_map(|tick| tick.loss),
        finding: finding.map(|finding| finding.title.clone()),
    }
}

fn rate(data: &RunData) -> Option<f64> {
    let end = data.steps.last()?.t;
    let recent = data.steps.iter().rev().take_while(|tick| tick.t > end - RECENT_S);
    let (steps, seconds) = recent.fold((0, 0.0), |(steps, seconds), tick| {
        (steps + tick.steps, seconds + tick.dt)
    });
    (seconds > 0.0).then(|| steps as f64 / seconds)
}

fn utilisation(data: &RunData) -> Option<f64> {
    let end = data.samples.last()?.t;
    let recent = data
        .samples
        .iter()
        .rev()
        .take_while(|sample| sample.t > end - RECENT_S);
    let values: Vec<f64> = recent
        .flat_map(|sample| sample.gpus.values().filter_map(|gpu| gpu.util))
        .collect();
    (!values.is_empty()).then(|| flatout_core::stats::mean(&values))
}

/// The last lines, each as it would stand on a terminal: what a progress bar wrote over is gone.
fn log_end(path: &Path) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
        file.take(LOG_BYTES).read_to_end(&mut bytes)
    });
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.rsplit('\r').find(|part| !part.trim().is_empty()))
        .map(printable)
        .collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].to_vec()
}

/// One line a job, for following.
pub fn line(status: &Status, language: Language) -> String {
    let jobs = status.jobs.iter().map(|job| {
        let mut parts = vec![format!(
            "{} {}",
            printable(&job.queue.id),
            printable(&job.queue.state)
        )];
        if let Some(seconds) = job.queue.run_s.filter(|_| !job.over) {
            parts.push(units::duration(seconds));
        }
        for run in &job.runs {
            parts.push(progress(run).get(language).to_owned());
        }
        parts.join("  ")
    });
    jobs.collect::<Vec<_>>().join("\n")
}

fn progress(run: &Live) -> Message {
    let steps = run.steps;
    let mut said = message!(en: "{steps} steps", zh: "{steps} 步");
    if let Some(rate) = run.steps_per_s.map(units::significant) {
        let more = message!(en: ", {rate}/s", zh: "，每秒 {rate} 步");
        said.en += &more.en;
        said.zh += &more.zh;
    }
    if let Some(share) = run.utilisation.map(units::percent) {
        let more = message!(en: ", GPU {share}", zh: "，GPU 利用率 {share}");
        said.en += &more.en;
        said.zh += &more.zh;
    }
    if let Some(loss) = run.loss.map(units::significant) {
        let more = message!(en: ", loss {loss}", zh: "，损失 loss {loss}");
        said.en += &more.en;
        said.zh += &more.zh;
    }
    said
}

pub fn text(status: &Status, language: Language, width: usize) -> String {
    let mut out = String::new();
    for job in &status.jobs {
        let queue = &job.queue;
        let (id, name, state) = (
            printable(&queue.id),
            printable(&queue.name),
            printable(&queue.state),
        );
        out += message!(en: "Job {id}  {name}  {state}\n", zh: "作业 {id}  {name}  {state}\n").get(language);
        let unknown = || "?".to_owned();
        let (ran, limit) = (
            queue.run_s.map_or_else(unknown, units::duration),
            queue.limit_s.map_or_else(unknown, units::duration),
        );
        out += message!(en: "  ran {ran} of {limit}", zh: "  已运行 {ran}，上限 {limit}").get(language);
        if let Some(nodes) = queue.nodes.as_deref().map(printable) {
            out += message!(en: " on {nodes}", zh: "，节点 {nodes}").get(language);
        }
        out.push('\n');
        if let Some(reason) = queue.reason.as_deref().map(printable).filter(|_| !job.over) {
            out += message!(en: "  waits: {reason}\n", zh: "  等待原因：{reason}\n").get(language);
            if let Some(start) = queue.start.as_deref().map(printable) {
                out += message!(en: "  expected to start {start}\n", zh: "  预计开始时间 {start}\n")
                    .get(language);
            }
        }
        for run in &job.runs {
            out += &format!("  {}: {}\n", printable(&run.run), progress(run).get(language));
            if let Some(finding) = &run.finding {
                out += &format!(
                    "    {}\n",
                    cut(&printable(finding.get(language)), width.saturating_sub(4))
                );
            }
        }
        if job.runs.is_empty() && queue.state != "PENDING" {
            out += message!(en: "  no record yet\n", zh: "  这里还没有记录\n").get(language);
        }
        for line in &job.log_end {
            out += &format!("  | {}\n", cut(line, width.saturating_sub(4)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_what_a_terminal_would_show() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "one\ntwo\n 10%|#\r 20%|##\nthree\x1b[2J\nfour\nfive").unwrap();
        assert_eq!(
            log_end(&path),
            ["two", " 20%|##", "three\u{fffd}[2J", "four", "five"]
        );
        assert_eq!(log_end(&folder.path().join("none")), Vec::<String>::new());
    }

    #[test]
    fn shows_why_a_job_waits() {
        let queue = QueuedJob {
            id: "7".into(),
            name: "train".into(),
            state: "PENDING".into(),
            reason: Some("Resources".into()),
            ..QueuedJob::default()
        };
        let status = Status {
            schema: SCHEMA,
            jobs: vec![JobStatus {
                over: false,
                queue,
                runs: Vec::new(),
                log_end: Vec::new(),
            }],
        };
        let english = text(&status, Language::English, 80);
        assert!(
            english.contains("waits: Resources") && english.contains("ran ? of ?"),
            "{english}"
        );
        assert!(!status.over() && line(&status, Language::Chinese).contains("PENDING"));
    }
}
