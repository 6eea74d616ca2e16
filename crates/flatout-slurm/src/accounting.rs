//! `sacct`: what a job asked for and what it used. Every value may be missing: accounting differs from cluster to cluster.

use super::{SlurmError, call, is_job_id};
use serde::Serialize;

const FIELDS: &[&str] = &[
    "JobIDRaw",
    "JobID",
    "JobName",
    "User",
    "Account",
    "Partition",
    "State",
    "ExitCode",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "NNodes",
    "NodeList",
    "NCPUS",
    "TotalCPU",
    "ReqMem",
    "MaxRSS",
    "AllocTRES",
    "TRESUsageInAve",
    "TRESUsageInMax",
    "NTasks",
];
/// A job's name may hold anything but this.
const DELIMITER: char = '\u{1f}';

/// One job, or one task of an array, its steps added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobAccount {
    /// As people say it: `4711_3`.
    pub id: String,
    /// As the job itself sees it.
    pub raw_id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_list: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// CPU time used, of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Of all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// The greatest resident memory of one task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<f64>,
    /// Tasks of the largest step: the peak is of one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// Mean GPU utilisation by Slurm's own sampling, 0 to 1, where the cluster records it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_peak_bytes: Option<f64>,
}

/// Everything `sacct` knows of a job; several entries for an array.
pub fn account(job_id: &str) -> Result<Vec<JobAccount>, SlurmError> {
    if !is_job_id(job_id) {
        return Err(SlurmError::BadJobId {
            text: job_id.to_owned(),
        });
    }
    let format = format!("--format={}", FIELDS.join(","));
    let delimiter = format!("--delimiter={DELIMITER}");
    let text = call(
        "sacct",
        &["-j", job_id, "--parsable2", "--noheader", &delimiter, &format],
    )?;
    let jobs = parse(&text);
    if jobs.is_empty() {
        return Err(SlurmError::UnknownJob {
            id: job_id.to_owned(),
        });
    }
    Ok(jobs)
}

fn parse(text: &str) -> Vec<JobAccount> {
    let mut jobs: Vec<JobAccount> = Vec::new();
    for line in text.lines() {
        let values: Vec<&str> = line.split(DELIMITER).collect();
        let field = |name: &str| {
            let at = FIELDS.iter().position(|known| *known == name)?;
            values
                .get(at)
                .map(|value| value.trim())
                .filter(|value| !value.is_empty() && *value != "Unknown")
        };
        let Some(raw_id) = field("JobIDRaw") else { continue };
        match raw_id.split_once('.') {
            None => jobs.push(job(raw_id, &field)),
            Some((whole, _)) => {
                if let Some(job) = jobs.iter_mut().rev().find(|job| job.raw_id == whole) {
                    add_step(job, &field);
                }
            }
        }
    }
    jobs
}

fn job<'a>(raw_id: &str, field: &impl Fn(&str) -> Option<&'a str>) -> JobAccount {
    let own = |name| field(name).map(str::to_owned);
    let whole = |name| field(name).and_then(|value| value.parse::<u64>().ok());
    let granted = field("AllocTRES").unwrap_or("");
    let cpus = whole("NCPUS");
    let nodes = whole("NNodes");
    JobAccount {
        id: own("JobID").unwrap_or_else(|| raw_id.to_owned()),
        raw_id: raw_id.to_owned(),
        name: own("JobName").unwrap_or_default(),
        user: own("User"),
        account: own("Account"),
        partition: own("Partition"),
        state: own("State").unwrap_or_default(),
        exit_code: own("ExitCode"),
        submit: own("Submit"),
        start: own("Start"),
        end: own("End"),
        elapsed_s: field("ElapsedRaw").and_then(|value| value.parse().ok()),
        limit_s: field("TimelimitRaw")
            .and_then(|value| value.parse::<f64>().ok())
            .map(|minutes| minutes * 60.0),
        nodes,
        node_list: own("NodeList").filter(|list| list != "None assigned"),
        cpus,
        cpu_s: field("TotalCPU").and_then(clock_s),
        memory_bytes: resource(granted, "mem")
            .and_then(bytes)
            .or_else(|| requested(field("ReqMem")?, nodes, cpus)),
        gpus: resource(granted, "gres/gpu").and_then(|count| count.parse().ok()),
        ..JobAccount::default()
    }
}

fn add_step<'a>(job: &mut JobAccount, field: &impl Fn(&str) -> Option<&'a str>) {
    let greater = |known: Option<f64>, new: Option<f64>| match (known, new) {
        (Some(known), Some(new)) => Some(known.max(new)),
        (known, new) => known.or(new),
    };
    job.memory_peak_bytes = greater(job.memory_peak_bytes, field("MaxRSS").and_then(bytes));
    job.tasks = job
        .tasks
        .max(field("NTasks").and_then(|value| value.parse().ok()));
    let average = field("TRESUsageInAve").and_then(|usage| resource(usage, "gres/gpuutil"));
    let percent = average.and_then(|value| value.parse::<f64>().ok());
    job.gpu_utilisation = greater(
        job.gpu_utilisation,
        percent.map(|percent| (percent / 100.0).clamp(0.0, 1.0)),
    );
    let peak = field("TRESUsageInMax").and_then(|usage| resource(usage, "gres/gpumem"));
    job.gpu_memory_peak_bytes = greater(job.gpu_memory_peak_bytes, peak.and_then(bytes));
}

/// `mem` of `billing=1,cpu=1,mem=300M`.
fn resource<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(',')
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// `300M`; older Slurms add `n` (a node) or `c` (a CPU).
fn requested(text: &str, nodes: Option<u64>, cpus: Option<u64>) -> Option<f64> {
    let (text, times) = match text.strip_suffix('n') {
        Some(text) => (text, nodes?),
        None => match text.strip_suffix('c') {
            Some(text) => (text, cpus?),
            None => (text, 1),
        },
    };
    Some(bytes(text)? * times as f64)
}

/// `98320K`, `1.5G`, `0`.
fn bytes(text: &str) -> Option<f64> {
    let scale = match text.as_bytes().last()? {
        b'K' => 1024f64,
        b'M' => 1024f64.powi(2),
        b'G' => 1024f64.powi(3),
        b'T' => 1024f64.powi(4),
        b'P' => 1024f64.powi(5),
        _ => 1.0,
    };
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value = number.parse::<f64>().ok()? * scale;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// `1-02:03:04`, `02:03:04`, `03:04.500`.
pub(super) fn clock_s(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<f64>().ok()?, clock),
        None => (0.0, text),
    };
    let mut seconds = 0.0;
    for part in clock.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    Some(days * 86_400.0 + seconds).filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(values: &[(&str, &str)]) -> String {
        let cells: Vec<&str> = FIELDS
            .iter()
            .map(|field| {
                values
                    .iter()
                    .find(|(name, _)| name == field)
                    .map_or("", |(_, value)| value)
            })
            .collect();
        cells.join(&DELIMITER.to_string()) + "\n"
    }

    #[test]
    fn steps_are_added_to_their_job() {
        let text = line(&[
            ("JobIDRaw", "1"),
            ("JobID", "1"),
            ("JobName", "a|b"),
            ("State", "COMPLETED"),
            ("ElapsedRaw", "4"),
            ("TimelimitRaw", "5"),
            ("NCPUS", "2"),
            ("TotalCPU", "00:01.701"),
            ("AllocTRES", "billing=1,cpu=1,gres/gpu=2,mem=300M,node=1"),
        ]) + &line(&[
            ("JobIDRaw", "1.batch"),
            ("MaxRSS", "98320K"),
            ("NTasks", "1"),
            ("TRESUsageInAve", "gres/gpuutil=40,mem=1M"),
        ]) + &line(&[("JobIDRaw", "1.0"), ("MaxRSS", "1G"), ("NTasks", "4")]);
        let jobs = parse(&text);
        assert_eq!(jobs.len(), 1);
        let job = &jobs[0];
        assert_eq!(
            (job.name.as_str(), job.limit_s, job.cpu_s, job.gpus, job.tasks),
            ("a|b", Some(300.0), Some(1.701), Some(2), Some(4))
        );
        assert_eq!(
            (job.memory_bytes, job.memory_peak_bytes),
            (Some(300.0 * 1048576.0), Some(1073741824.0))
        );
        assert_eq!(job.gpu_utilisation, Some(0.4));
    }

    #[test]
    fn what_is_missing_stays_unknown() {
        let jobs = parse(&line(&[
            ("JobIDRaw", "7"),
            ("TimelimitRaw", "UNLIMITED"),
            ("Start", "Unknown"),
            ("ReqMem", "4Gn"),
            ("NNodes", "2"),
        ]));
        assert_eq!(
            (
                jobs[0].limit_s,
                jobs[0].start.as_deref(),
                jobs[0].elapsed_s,
                jobs[0].gpus
            ),
            (None, None, None, None)
        );
        assert_eq!(jobs[0].memory_bytes, Some(8.0 * 1024f64.powi(3)));
        assert_eq!(
            (clock_s("1-02:03:04"), clock_s("02:03"), clock_s("x")),
            (Some(93_784.0), Some(123.0), None)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_fine(text in "[0-9a-z.:=,|\u{1f}\n-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
