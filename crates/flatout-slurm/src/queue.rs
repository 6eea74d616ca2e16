//! `scontrol show job`: the state of a job that waits, runs or ended a little while ago.

use super::accounting::clock_s;
use super::{SlurmError, call, is_job_id};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueuedJob {
    pub id: String,
    pub name: String,
    pub state: String,
    /// Why it waits, or how it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<f64>,
    /// When it began, or is expected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// Where its standard output goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

/// The job, or the tasks of an array, as the controller remembers them.
pub fn queued(job_id: &str) -> Result<Vec<QueuedJob>, SlurmError> {
    if !is_job_id(job_id) {
        return Err(SlurmError::BadJobId {
            text: job_id.to_owned(),
        });
    }
    match call("scontrol", &["show", "job", "-o", job_id]) {
        Ok(text) => Ok(text.lines().filter_map(parse).collect()),
        Err(SlurmError::Refused { words, .. }) if words.contains("Invalid job id") => {
            Err(SlurmError::UnknownJob {
                id: job_id.to_owned(),
            })
        }
        Err(error) => Err(error),
    }
}

/// Whether a job of this state will not run any more.
pub fn is_over(state: &str) -> bool {
    let word = state.split([' ', '+']).next().unwrap_or("");
    !matches!(
        word,
        "PENDING"
            | "CONFIGURING"
            | "RUNNING"
            | "COMPLETING"
            | "SUSPENDED"
            | "REQUEUED"
            | "RESIZING"
            | "STOPPED"
            | "SIGNALING"
            | "STAGE_OUT"
    )
}

fn parse(line: &str) -> Option<QueuedJob> {
    let value = |key: &str| {
        value(line, key).filter(|value| !matches!(*value, "(null)" | "N/A" | "Unknown" | "None" | ""))
    };
    let raw = value("JobId")?;
    let id = match (value("ArrayJobId"), value("ArrayTaskId")) {
        (Some(job), Some(task)) => format!("{job}_{task}"),
        _ => raw.to_owned(),
    };
    Some(QueuedJob {
        id,
        name: value("JobName").unwrap_or_default().to_owned(),
        state: value("JobState").unwrap_or_default().to_owned(),
        reason: value("Reason").map(str::to_owned),
        run_s: value("RunTime").and_then(clock_s),
        limit_s: value("TimeLimit").and_then(clock_s),
        start: value("StartTime").map(str::to_owned),
        nodes: value("NodeList").map(str::to_owned),
        log: value("StdOut").map(PathBuf::from),
        folder: value("WorkDir").map(PathBuf::from),
    })
}

/// `Key=value` up to the next key: values may hold blanks.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut from = 0;
    let start = loop {
        let at = line[from..].find(key)? + from;
        let end = at + key.len();
        let begins = at == 0 || line.as_bytes()[at - 1] == b' ';
        if begins && line[end..].starts_with('=') {
            break end + 1;
        }
        from = end;
    };
    let rest = &line[start..];
    let mut end = rest.len();
    for (at, _) in rest.match_indices(' ') {
        let word = rest[at + 1..].split([' ', '=']).next().unwrap_or("");
        let is_key = rest[at + 1 + word.len()..].starts_with('=')
            && word.starts_with(|c: char| c.is_ascii_uppercase());
        if is_key {
            end = at;
            break;
        }
    }
    Some(rest[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_of_scontrol() {
        let line = "JobId=8 ArrayJobId=7 ArrayTaskId=1 JobName=my job UserId=root(0) JobState=RUNNING Reason=None RunTime=00:01:04 TimeLimit=1-00:00:00 StartTime=2026-11-15T06:48:02 NodeList=n1 WorkDir=/home/a b StdErr=/home/a b/x.log StdOut=/home/a b/x.log Power= ";
        let job = parse(line).unwrap();
        assert_eq!(
            (job.id.as_str(), job.name.as_str(), job.reason),
            ("7_1", "my job", None)
        );
        assert_eq!((job.run_s, job.limit_s), (Some(64.0), Some(86_400.0)));
        assert_eq!(job.log, Some("/home/a b/x.log".into()));
        assert!(
            !is_over("RUNNING") && !is_over("PENDING") && is_over("CANCELLED by 0") && is_over("COMPLETED")
        );
    }

    proptest! {
        #[test]
        fn any_line_is_fine(line in "\\PC{0,120}", key in "[A-Z][a-z]{1,6}") {
            let _ = parse(&line);
            let _ = value(&line, &key);
        }
    }
}
