//! Flatout's records of the jobs: which record is of which job, how much of the job's GPU time it saw, and its first finding.

use super::jobs::Job;
use flatout_core::{Finding, Fix, Kind, Message};
use flatout_diagnose::Analysis;
use flatout_diagnose::verdict::Gatherer;
use flatout_record::Record;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Job numbers begin again at 1 when they reach the cluster's limit; records of other times are of other jobs. Clocks differ by minutes, and a
/// file's local times by up to a day from UTC.
const APART_S: i64 = 86_400;
/// Records that are read in full. Those of the jobs with most GPU-hours come first.
const MOST_EXAMINED: usize = 2000;

/// What the records of one job show.
pub(super) struct Seen {
    pub gpus: Vec<Gpu>,
    pub rule: Option<String>,
    pub finding: Option<Message>,
    pub fix: Option<Message>,
    pub record: PathBuf,
}

/// One GPU of a node: how long it was watched, and its mean utilization in that time.
pub(super) struct Gpu {
    pub seconds: f64,
    pub share: f64,
}

impl Seen {
    /// Used and watched GPU-seconds. `None` where no GPU was watched, or more than the job had: then it is unknown which were its own.
    pub fn of_gpus(&self, allocated: u64, elapsed_s: f64) -> Option<(f64, f64)> {
        if self.gpus.is_empty() || self.gpus.len() as u64 > allocated {
            return None;
        }
        let watched = |gpu: &Gpu| gpu.seconds.min(elapsed_s);
        let known_s = self.gpus.iter().map(watched).sum::<f64>();
        let used_s = self.gpus.iter().map(|gpu| watched(gpu) * gpu.share).sum::<f64>();
        (known_s > 0.0).then_some((used_s, known_s))
    }
}

/// The records of Slurm jobs below some folders: the folders' own runs, those of projects and users inside of them.
pub fn find(folders: &[PathBuf]) -> Vec<Record> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut look = |folder: &Path, found: &mut Vec<Record>| {
        for path in children(folder) {
            if let Ok(record) = Record::open(&path)
                && record.info.job.as_ref().is_some_and(|job| job.system == "slurm")
                && fs::canonicalize(&path).is_ok_and(|path| seen.insert(path))
            {
                found.push(record);
            }
        }
    };
    let places = |folder: &Path| {
        [
            folder.to_owned(),
            folder.join("runs"),
            folder.join(".flatout/runs"),
        ]
    };
    for folder in folders {
        for place in places(folder) {
            look(&place, &mut found);
        }
        // One folder per user or project.
        for child in children(folder) {
            for place in places(&child).into_iter().skip(1) {
                look(&place, &mut found);
            }
        }
    }
    found
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

/// What the records show of each job that has some, by its place in the list.
pub(super) fn examine(jobs: &[Job], records: &[Record]) -> HashMap<usize, Seen> {
    if records.is_empty() {
        return HashMap::new();
    }
    let mut by_number: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        by_number.entry(job.raw).or_default().push(index);
    }
    let mut of_job: BTreeMap<usize, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let number = record
            .info
            .job
            .as_ref()
            .and_then(|job| job.id.parse::<u64>().ok());
        let runs = number.and_then(|number| by_number.get(&number));
        if let Some(index) = runs.and_then(|runs| run_of(record, runs, jobs)) {
            of_job.entry(index).or_default().push(record);
        }
    }
    let mut order: Vec<(usize, Vec<&Record>)> = of_job.into_iter().collect();
    let hours = |index: usize| jobs.get(index).map_or(0.0, |job| job.gpus as f64 * job.elapsed_s);
    order.sort_by(|a, b| hours(b.0).total_cmp(&hours(a.0)).then(a.0.cmp(&b.0)));
    let (next, results) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    let left = AtomicUsize::new(MOST_EXAMINED);
    let threads = flatout_core::cpus::UsableCpus::here().count().clamp(1, 16);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(order.len()) {
            scope.spawn(|| {
                while let Some((index, records)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                        left.checked_sub(records.len())
                    });
                    if taken.is_err() {
                        continue;
                    }
                    // No record may end the account of all others, whatever is in it.
                    let seen = std::panic::catch_unwind(AssertUnwindSafe(|| look_at(records)));
                    if let Ok(Some(seen)) = seen {
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.insert(*index, seen);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Of several runs of a number, the one that the record began in.
fn run_of(record: &Record, runs: &[usize], jobs: &[Job]) -> Option<usize> {
    let began = (record.info.started_unix_ms / 1000) as i64;
    let apart = |job: &Job| {
        let Some(start) = job.start else { return 0 };
        let end = start.saturating_add(job.elapsed_s as i64);
        if began < start {
            start - began
        } else {
            (began - end).max(0)
        }
    };
    let near = runs
        .iter()
        .filter_map(|index| Some((apart(jobs.get(*index)?), *index)));
    let (away, index) = near.min()?;
    (away <= APART_S).then_some(index)
}

/// The same GPU in several records. Its number on its host changes with a restart and with what a job's cgroup shows.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum GpuKey {
    Uuid(String),
    Place(String, u32),
}

fn look_at(records: &[&Record]) -> Option<Seen> {
    let mut watched: BTreeMap<GpuKey, Vec<Span>> = BTreeMap::new();
    let mut first: Option<(f64, Option<Finding>, PathBuf)> = None;
    for record in records {
        let data = record.load();
        let host = data
            .info
            .host
            .as_ref()
            .map_or_else(String::new, |host| host.name.clone());
        let mut gatherer = Gatherer::new(&data.info);
        data.samples.iter().for_each(|sample| gatherer.add(sample));
        let verdict = gatherer.verdict();
        let began = data.info.started_unix_ms as f64 / 1e3;
        let first_s = data.samples.first().map_or(0.0, |sample| sample.t);
        for (gpu, of) in &verdict.gpus {
            if let Some(utilisation) = &of.utilisation {
                let uuid = data.info.gpus.get(gpu).and_then(|info| info.uuid.clone());
                let key = match uuid.filter(|uuid| !uuid.is_empty()) {
                    Some(uuid) => GpuKey::Uuid(uuid),
                    None => GpuKey::Place(host.clone(), *gpu),
                };
                let entry = Span {
                    began: began + first_s,
                    seconds: verdict.duration_s,
                    share: utilisation.spread.mean,
                };
                watched.entry(key).or_default().push(entry);
            }
        }
        let seconds = data.steps.iter().map(|tick| tick.dt).sum::<f64>();
        let longest = first.as_ref().is_none_or(|(other, ..)| seconds > *other);
        if longest {
            let findings = flatout_diagnose::conclude(&Analysis::new(&data)).findings;
            let cause = findings.into_iter().find(|finding| finding.kind == Kind::Cause);
            first = Some((seconds, cause, record.folder().to_owned()));
        }
    }
    let (_, finding, record) = first?;
    Some(Seen {
        gpus: watched.into_values().map(together).collect(),
        rule: finding.as_ref().map(|finding| finding.rule.clone()),
        fix: finding
            .as_ref()
            .and_then(|finding| finding.fixes.iter().find_map(fix)),
        finding: finding.map(|finding| finding.title),
        record,
    })
}

/// What one record saw of a GPU: from when on, in seconds since 1970, how long, and its mean utilization.
struct Span {
    began: f64,
    seconds: f64,
    share: f64,
}

/// Several records of one GPU: the time that any of them watched, and the mean of their utilization by their length.
fn together(mut spans: Vec<Span>) -> Gpu {
    spans.sort_by(|a, b| a.began.total_cmp(&b.began));
    let (mut seconds, mut until) = (0.0, f64::NEG_INFINITY);
    let (mut weights, mut sum) = (0.0, 0.0);
    for span in spans {
        let end = span.began + span.seconds;
        seconds += (end - span.began.max(until)).max(0.0);
        until = until.max(end);
        weights += span.seconds;
        sum += span.seconds * span.share;
    }
    let share = if weights > 0.0 {
        (sum / weights).clamp(0.0, 1.0)
    } else {
        0.0
    };
    Gpu { seconds, share }
}

/// One line for an e-mail. What flatout itself would try is for whoever has the record.
fn fix(fix: &Fix) -> Option<Message> {
    match fix {
        Fix::Setting { setting, to, say, .. } => Some(Message {
            en: format!("{setting}={to}: {}", say.en),
            zh: format!("{setting}={to}：{}", say.zh),
        }),
        Fix::Code {
            place: Some(place),
            say,
        } => Some(Message {
            en: format!("{place}: {}", say.en),
            zh: format!("{place}：{}", say.zh),
        }),
        Fix::Code { say, .. } | Fix::Edits { say, .. } => Some(say.clone()),
        Fix::Command { .. } | Fix::Refused { .. } => None,
    }
}
