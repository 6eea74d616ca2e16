//! A cluster's GPU-hours: allocated, used, wasted and unknown, by user, by account and by cause.
//!
//! A job's GPU-hours are its GPUs times the time that it held them. Used are those times the mean utilization, which comes from the
//! summary of jobstats where there is one, else from flatout's records of the job. What neither covers is unknown: it is counted in a
//! column of its own, never as used and never as wasted.

mod jobs;
pub mod mail;
pub mod page;
mod records;
pub mod text;

pub use jobs::{Filter, Jobs};
pub use records::find as find_records;

use flatout_core::Message;
use flatout_record::Record;
use jobs::Job;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;
/// Below this share a GPU did nothing.
const IDLE: f64 = 0.01;
/// Jobs that wasted less are not worth a talk.
const TALK_HOURS: f64 = 1.0;
/// Jobs that used their GPUs this well waste nothing that a talk would save.
const BUSY: f64 = 0.7;
/// Jobs worth a talk that are listed, the costliest first.
const MOST_TALKS: usize = 200;

/// GPU-hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hours {
    /// `used + wasted + unknown`.
    pub allocated: f64,
    pub used: f64,
    pub wasted: f64,
    /// Nothing measured them.
    pub unknown: f64,
}

impl Hours {
    fn add(&mut self, other: Self) {
        self.allocated += other.allocated;
        self.used += other.used;
        self.wasted += other.wasted;
        self.unknown += other.unknown;
    }

    /// Mean utilization of what was measured; `None` where nothing was.
    pub fn utilization(&self) -> Option<f64> {
        let known = self.used + self.wasted;
        (known > 0.0).then(|| self.used / known)
    }

    fn rounded(self) -> Self {
        let round = |hours: f64| (hours * 1e4).round() / 1e4;
        Self {
            allocated: round(self.allocated),
            used: round(self.used),
            wasted: round(self.wasted),
            unknown: round(self.unknown),
        }
    }
}

/// A user, an account or a partition.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    pub name: String,
    pub jobs: u64,
    #[serde(flatten)]
    pub hours: Hours,
}

/// What the wasted hours were lost to.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CauseRow {
    /// The rule of the first finding, or `gpus-never-used`, `some-gpus-never-used`, `nothing-found`, `no-record`.
    pub cause: String,
    pub jobs: u64,
    #[serde(flatten)]
    pub hours: Hours,
}

/// Where a job's utilization is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Jobstats,
    Records,
}

/// A job that wasted enough to be worth a talk.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Talk {
    /// As people write it: `4711_3`.
    pub job: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub user: String,
    pub account: String,
    pub partition: String,
    pub state: String,
    pub gpus: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// How long it held them, in the time asked for.
    pub seconds: f64,
    #[serde(flatten)]
    pub hours: Hours,
    pub utilization: f64,
    pub source: Source,
    /// GPUs that did nothing at all.
    pub unused_gpus: u64,
    pub cause: String,
    /// The first finding of its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Message>,
    /// The folder of that record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<std::path::PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fleet {
    pub schema: u32,
    /// The time asked for, as it was given; `None` for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Runs of jobs that held GPUs.
    pub jobs: u64,
    pub hours: Hours,
    /// Of those, still running: counted until now.
    pub running: u64,
    /// Of those, ended and started again by Slurm (preempted, a lost node, `scontrol requeue`): each run counts.
    pub requeued: u64,
    /// Jobs and groups of array tasks that have not begun.
    pub waiting: u64,
    pub without_gpus: u64,
    pub with_jobstats: u64,
    pub with_records: u64,
    /// By wasted hours, then by allocated ones.
    pub users: Vec<Row>,
    pub accounts: Vec<Row>,
    pub partitions: Vec<Row>,
    pub causes: Vec<CauseRow>,
    pub talks: Vec<Talk>,
    /// Further ones, that wasted less than those.
    pub talks_left_out: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Message>,
}

/// The account of what `jobs` holds. `records`: flatout's records, of whichever jobs.
pub fn fleet(jobs: Jobs, records: &[Record], since: Option<String>, until: Option<String>) -> Fleet {
    let names = jobs.names;
    let examined = records::examine(&jobs.list, records);
    let mut fleet = Fleet {
        schema: SCHEMA,
        since,
        until,
        jobs: 0,
        hours: Hours::default(),
        running: 0,
        requeued: 0,
        waiting: jobs.waiting,
        without_gpus: jobs.without_gpus,
        with_jobstats: 0,
        with_records: 0,
        users: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        causes: Vec::new(),
        talks: Vec::new(),
        talks_left_out: 0,
        notes: jobs::notes(jobs.unreadable, jobs.repeated),
    };
    let (mut users, mut accounts, mut partitions) = (Groups::default(), Groups::default(), Groups::default());
    let mut causes: BTreeMap<String, (u64, Hours)> = BTreeMap::new();
    for (index, job) in jobs.list.iter().enumerate() {
        let seen = examined.get(&index);
        let judged = judge(job, seen);
        fleet.jobs += 1;
        fleet.hours.add(judged.hours);
        fleet.running += u64::from(jobs::is_running(names.get(job.state)));
        fleet.requeued += u64::from(jobs::is_requeued(names.get(job.state)));
        fleet.with_jobstats += u64::from(job.shares.is_some());
        fleet.with_records += u64::from(seen.is_some());
        users.add(job.user, judged.hours);
        accounts.add(job.account, judged.hours);
        partitions.add(job.partition, judged.hours);
        if let Some(cause) = &judged.cause {
            let entry = causes.entry(cause.clone()).or_default();
            entry.0 += 1;
            entry.1.add(judged.hours);
        }
        let utilization = judged.hours.utilization();
        if let (Some(utilization), Some(source), Some(cause)) = (utilization, judged.source, judged.cause)
            && judged.hours.wasted >= TALK_HOURS
            && utilization < BUSY
        {
            fleet.talks.push(Talk {
                job: job.id.to_string(),
                name: job.name.to_string(),
                user: names.shown(job.user),
                account: names.shown(job.account),
                partition: names.shown(job.partition),
                state: names.shown(job.state),
                gpus: job.gpus,
                gpu_type: job.gpu_type.map(|kind| names.get(kind).to_owned()),
                seconds: job.elapsed_s,
                hours: judged.hours.rounded(),
                utilization: (utilization * 1e4).round() / 1e4,
                source,
                unused_gpus: judged.unused,
                cause,
                finding: seen.and_then(|seen| seen.finding.clone()),
                fix: seen.and_then(|seen| seen.fix.clone()),
                record: seen.map(|seen| seen.record.clone()),
            });
        }
    }
    let by_waste = |a: &Hours, b: &Hours| {
        let wasted = b.wasted.total_cmp(&a.wasted);
        wasted.then(b.allocated.total_cmp(&a.allocated))
    };
    let rows = |groups: Groups| {
        let mut rows: Vec<Row> = groups
            .sums
            .into_iter()
            .map(|(name, (jobs, hours))| Row {
                name: names.shown(name),
                jobs,
                hours: hours.rounded(),
            })
            .collect();
        rows.sort_by(|a, b| by_waste(&a.hours, &b.hours).then(a.name.cmp(&b.name)));
        rows
    };
    fleet.users = rows(users);
    fleet.accounts = rows(accounts);
    fleet.partitions = rows(partitions);
    fleet.causes = causes
        .into_iter()
        .map(|(cause, (jobs, hours))| CauseRow {
            cause,
            jobs,
            hours: hours.rounded(),
        })
        .collect();
    fleet
        .causes
        .sort_by(|a, b| by_waste(&a.hours, &b.hours).then(a.cause.cmp(&b.cause)));
    fleet
        .talks
        .sort_by(|a, b| by_waste(&a.hours, &b.hours).then(a.job.cmp(&b.job)));
    fleet.talks_left_out = fleet.talks.len().saturating_sub(MOST_TALKS) as u64;
    fleet.talks.truncate(MOST_TALKS);
    fleet.hours = fleet.hours.rounded();
    fleet
}

/// Sums by the number of a name.
#[derive(Default)]
struct Groups {
    sums: HashMap<u32, (u64, Hours)>,
}

impl Groups {
    fn add(&mut self, name: u32, hours: Hours) {
        let entry = self.sums.entry(name).or_default();
        entry.0 += 1;
        entry.1.add(hours);
    }
}

/// What is known of a job's use.
struct Judged {
    hours: Hours,
    source: Option<Source>,
    unused: u64,
    /// `None` where nothing was wasted, as far as is known.
    cause: Option<String>,
}

fn judge(job: &Job, seen: Option<&records::Seen>) -> Judged {
    let all_s = job.gpus as f64 * job.elapsed_s;
    let (used_s, known_s, unused, source) = match (&job.shares, seen) {
        (Some(shares), _) => {
            // A GPU that jobstats has no value of is unknown; with more than were allocated their mean has to do.
            let known = (shares.len() as u64).min(job.gpus) as f64;
            let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
            let unused = shares.iter().filter(|share| **share < IDLE).count() as u64;
            let used_s = mean * known * job.elapsed_s;
            (used_s, known * job.elapsed_s, unused, Some(Source::Jobstats))
        }
        (None, Some(seen)) => match seen.of_gpus(job.gpus, job.elapsed_s) {
            Some((used_s, known_s)) => {
                let unused = seen.gpus.iter().filter(|gpu| gpu.share < IDLE).count() as u64;
                (used_s, known_s, unused, Some(Source::Records))
            }
            None => (0.0, 0.0, 0, None),
        },
        (None, None) => (0.0, 0.0, 0, None),
    };
    let hours = Hours {
        allocated: all_s / 3600.0,
        used: used_s / 3600.0,
        wasted: (known_s - used_s).max(0.0) / 3600.0,
        unknown: (all_s - known_s).max(0.0) / 3600.0,
    };
    let unused = unused.min(job.gpus);
    let cause = (hours.wasted > 0.0).then(|| {
        let rule = seen.and_then(|seen| seen.rule.clone());
        match (rule, seen) {
            (Some(rule), _) => rule,
            (None, _) if unused == job.gpus => "gpus-never-used".to_owned(),
            (None, _) if unused > 0 => "some-gpus-never-used".to_owned(),
            (None, Some(_)) => "nothing-found".to_owned(),
            (None, None) => "no-record".to_owned(),
        }
    });
    Judged {
        hours,
        source,
        unused,
        cause,
    }
}

/// The causes that are no rules' ids, in words.
pub(crate) fn cause_words(cause: &str) -> Option<Message> {
    use flatout_core::message;
    Some(match cause {
        "gpus-never-used" => message!(en: "no GPU was used", zh: "GPU 完全没有使用"),
        "some-gpus-never-used" => message!(en: "some GPUs were never used", zh: "部分 GPU 从未使用"),
        "nothing-found" => message!(en: "recorded, no cause found", zh: "有记录，未发现原因"),
        "no-record" => message!(en: "no record of flatout", zh: "没有 flatout 记录"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
