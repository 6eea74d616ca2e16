//! The ranks of one job side by side: who holds the others up.

use flatout_core::{Message, message, units};
use flatout_diagnose::analysis::collectives::Collectives;
use flatout_record::{self as record, Fact, JobInfo, Phase, Record, RunData};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A rank whose own work exceeds the median's by this share of a step holds the others up.
pub const STRAGGLER: f64 = 0.10;
/// Ranks of one job begin within a minute; records further apart come from clocks that differ, or from a late start.
const APART_S: f64 = 60.0;

/// The ranks of one job; none for a run that has no others beside it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ranks {
    pub rows: Vec<RankRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Message>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RankRow {
    pub rank: u32,
    pub run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// A step's time without waiting for the device and without collectives: what this rank itself needs. In step with the others, a
    /// slow rank shows here, not in the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    /// In collectives: until the last rank arrived, and after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    pub straggler: bool,
    /// By the host's own clock; hosts may disagree.
    pub started_unix_ms: u64,
}

pub fn row(rank: u32, data: &RunData) -> RankRow {
    let steps: u64 = data.steps.iter().map(|tick| tick.steps).sum();
    let sum = |phase| data.steps.iter().map(|tick| tick.phase_ms(phase)).sum::<f64>();
    let seconds: f64 = data
        .steps
        .iter()
        .filter(|tick| tick.steps > 0)
        .map(|tick| tick.dt)
        .sum();
    let a_step = |ms: f64| (steps > 0).then(|| ms / steps as f64);
    let utilisation: Vec<f64> = data
        .samples
        .iter()
        .flat_map(|sample| sample.gpus.values().filter_map(|gpu| gpu.util))
        .collect();
    let collectives = Collectives::new(data, (0.0, f64::INFINITY));
    // Records of other hosts cannot be compared by the moment: their collectives are still no work of this rank's own.
    let within_s = collectives.as_ref().map_or(0.0, Collectives::host_s);
    let (wait_s, transfer_s) = collectives.map_or((None, None), |all| (all.wait_s(), all.transfer_s()));
    let own_ms = sum(Phase::Data) + sum(Phase::Transfer) + sum(Phase::Compute) + sum(Phase::Other);
    RankRow {
        rank,
        run: data.info.id.clone(),
        host: data.info.host.as_ref().map(|host| host.name.clone()),
        steps,
        step_ms: a_step(seconds * 1e3),
        own_ms: a_step((own_ms - within_s * 1e3).max(0.0)),
        wait_ms: wait_s.and_then(|seconds| a_step(seconds * 1e3)),
        transfer_ms: transfer_s.and_then(|seconds| a_step(seconds * 1e3)),
        data_ms: a_step(sum(Phase::Data)),
        utilisation: (!utilisation.is_empty()).then(|| flatout_core::stats::mean(&utilisation)),
        straggler: false,
        started_unix_ms: data.info.started_unix_ms,
    }
}

impl Ranks {
    /// Of these records, oldest first; of a rank that was started again, the newest counts.
    pub fn of(records: &[Record]) -> Self {
        let mut rows = BTreeMap::new();
        for record in records {
            let inner = record.ranks();
            for (rank, folder) in &inner {
                if let Ok(inner) = Record::open(folder) {
                    rows.insert(*rank, row(*rank, &inner.load()));
                }
            }
            let data = record.load();
            // Where all ranks have folders of their own, the record itself holds no steps.
            if inner.is_empty() || data.steps.iter().any(|tick| tick.steps > 0) {
                let rank = number_of(record, &data.facts, &inner);
                rows.insert(rank, row(rank, &data));
            }
        }
        let mut rows: Vec<RankRow> = rows.into_values().collect();
        if rows.len() < 2 {
            return Self::default();
        }
        mark(&mut rows);
        let notes = apart(&rows).into_iter().collect();
        Self { rows, notes }
    }

    /// With the times of the steady part, where the diagnosis has compared the ranks: a page has one number for one fact.
    #[must_use]
    pub fn as_diagnosed(mut self, compared: Option<&flatout_diagnose::ranks::Ranks>) -> Self {
        let mut found = 0;
        for row in &mut self.rows {
            let rows = compared.iter().flat_map(|ranks| &ranks.rows);
            if let Some(steady) = rows.clone().find(|steady| steady.rank == row.rank) {
                row.steps = steady.steps;
                row.step_ms = Some(steady.step_ms);
                (row.wait_ms, row.transfer_ms) = (steady.wait_ms, steady.transfer_ms);
                row.own_ms = steady.own_ms.or(row.own_ms);
                row.data_ms = Some(steady.data_ms);
                row.straggler = steady.slow;
                found += 1;
            }
        }
        // A record knows the ranks of its own host alone: the slowest of those may be as fast as most.
        if found > 0 && found < self.rows.len() {
            mark(&mut self.rows);
        }
        self.notes
            .extend(compared.into_iter().flat_map(|ranks| ranks.notes.clone()));
        self
    }

    /// The ranks of the job that a record is of: the records beside it with the same job, and those inside it.
    pub fn beside(record: &Record) -> Self {
        let records = records_beside(record);
        if records.len() < 2 && record.ranks().is_empty() {
            return Self::default();
        }
        Self::of(&records)
    }
}

/// The records of the same job beside a record, with it, oldest first.
fn records_beside(record: &Record) -> Vec<Record> {
    let of_rank = |job: &&JobInfo| job.fields.contains_key("rank");
    let Some(job) = record.info.job.as_ref().filter(of_rank) else {
        return vec![record.clone()];
    };
    let folder = record.folder().parent().unwrap_or(Path::new("."));
    let same = |other: &JobInfo| other.id == job.id && other.system == job.system;
    record::list(folder)
        .iter()
        .filter(|entry| entry.info.job.as_ref().is_some_and(same))
        .filter_map(|entry| Record::open(&entry.folder).ok())
        .collect()
}

/// The record that a rank's own files are in: the given one, or another of the same job; and the ranks that there are, in case that
/// it is none of them.
pub fn record_of(record: &Record, rank: u32) -> Result<Record, BTreeSet<u32>> {
    let mut known = BTreeSet::new();
    let others = records_beside(record).into_iter().rev();
    for candidate in std::iter::once(record.clone()).chain(others) {
        let inner = candidate.ranks();
        known.insert(rank_of(&candidate));
        known.extend(inner.iter().map(|(rank, _)| *rank));
        if known.contains(&rank) {
            return Ok(candidate);
        }
    }
    Err(known)
}

/// The rank a record is of; 0 for a run with one.
pub fn rank_of(record: &Record) -> u32 {
    let facts: Vec<Fact> = record.facts().collect();
    number_of(record, &facts, &record.ranks())
}

/// By the program's own word, which goes before the number of Slurm's task: where that started a launcher, it counts nodes.
fn number_of(record: &Record, facts: &[Fact], inner: &[(u32, PathBuf)]) -> u32 {
    let fact = facts.iter().rfind(|fact| fact.key == "parallel.rank");
    let told = fact.and_then(|fact| u32::try_from(fact.value.as_u64()?).ok());
    let task = || {
        let rank = record.info.job.as_ref()?.fields.get("rank")?;
        rank.parse().ok()
    };
    // The record is of a host's first rank, and the others follow it.
    let before = || inner.first().map(|(rank, _)| rank.saturating_sub(1));
    told.or_else(before).or_else(task).unwrap_or(0)
}

/// Each rank is measured by its own clock alone, so clocks that differ do no harm; it is said, since time stamps will not match.
fn apart(rows: &[RankRow]) -> Option<Message> {
    let starts = rows
        .iter()
        .map(|row| row.started_unix_ms)
        .filter(|start| *start > 0);
    let (first, last) = (starts.clone().min()?, starts.max()?);
    let seconds = (last - first) as f64 / 1e3;
    (seconds > APART_S).then(|| {
        let apart = units::duration(seconds);
        message!(
            en: "the ranks' records start {apart} apart: the clocks of their hosts differ, or one rank \
            started late; each rank is measured by its own clock",
            zh: "各 rank 的记录开始时间相差 {apart}：主机时钟不一致，或有 rank 启动较晚；每个 rank 只按自己的时钟计量"
        )
    })
}

/// Marks the ranks that hold the others up. One alone has nobody to hold up.
pub fn mark(rows: &mut [RankRow]) {
    let mut own: Vec<f64> = rows.iter().filter_map(|row| row.own_ms).collect();
    if own.len() < 2 {
        return;
    }
    own.sort_by(f64::total_cmp);
    // Of two, the faster is the measure.
    let measure = own[(own.len() - 1) / 2];
    for row in rows {
        row.straggler = row
            .own_ms
            .zip(row.step_ms)
            .is_some_and(|(own, step)| measure > 0.0 && own - measure > step * STRAGGLER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{Event, EventKind, PhaseTime, RecordWriter, RunInfo, StepTick};

    fn rank(data_ms: f64) -> RunData {
        let time = |ms| PhaseTime {
            ms,
            ..PhaseTime::default()
        };
        let tick = StepTick {
            t: 1.0,
            dt: 1.0,
            steps: 10,
            phases: [(Phase::Data, time(data_ms)), (Phase::Sync, time(900.0 - data_ms))].into(),
            ..StepTick::default()
        };
        RunData {
            steps: vec![tick],
            ..RunData::default()
        }
    }

    #[test]
    fn the_slow_rank_is_marked_though_all_take_the_same_step() {
        let mut rows: Vec<RankRow> = [100.0, 105.0, 400.0]
            .iter()
            .enumerate()
            .map(|(index, data)| row(index as u32, &rank(*data)))
            .collect();
        mark(&mut rows);
        assert_eq!(
            rows.iter().map(|row| row.straggler).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!(rows[2].step_ms, Some(100.0));
        assert!(apart(&rows).is_none());
        (rows[0].started_unix_ms, rows[1].started_unix_ms) = (1_000_000_000, 1_010_800_000);
        assert!(apart(&rows).unwrap().en.contains("3 h 00 min apart"));
        let mut alone = vec![row(0, &RunData::default())];
        mark(&mut alone);
        assert!(!alone[0].straggler && alone[0].step_ms.is_none());
    }

    /// Ten steps of 100 ms: own work, and waiting inside collectives for the others, seen from this rank alone.
    fn alone(own_ms: f64) -> RunData {
        let time = PhaseTime {
            ms: 1000.0,
            ..PhaseTime::default()
        };
        let tick = StepTick {
            t: 1.0,
            dt: 1.0,
            steps: 10,
            phases: [(Phase::Compute, time)].into(),
            ..StepTick::default()
        };
        let kind = EventKind::Collective {
            op: "all_reduce".into(),
            place: None,
            count: 10,
            aligned: 0,
            ms: 1000.0 - own_ms * 10.0,
            wait_ms: None,
            transfer_ms: None,
            last: 0,
            late_ms: 0.0,
            ranks: 0,
            world: 3,
        };
        RunData {
            steps: vec![tick],
            events: vec![Event { t: 1.0, kind }],
            ..RunData::default()
        }
    }

    #[test]
    fn waiting_in_collectives_is_not_own_work_in_records_of_one_rank_each() {
        let rows = |own: [f64; 3]| {
            let mut rows: Vec<RankRow> = (0..).zip(own).map(|(at, own)| row(at, &alone(own))).collect();
            mark(&mut rows);
            rows.iter().map(|row| row.straggler).collect::<Vec<_>>()
        };
        assert_eq!(rows([20.0, 22.0, 95.0]), [false, false, true]);
        assert_eq!(rows([90.0, 92.0, 95.0]), [false; 3]);
    }

    #[test]
    fn the_programs_rank_goes_before_the_number_of_the_task() {
        let folder = tempfile::tempdir().unwrap();
        let record = |name: &str, rank: Option<u32>| {
            let job = JobInfo {
                system: "slurm".into(),
                id: "7".into(),
                fields: [("rank".to_owned(), "1".to_owned())].into(),
            };
            let info = RunInfo {
                job: Some(job),
                ..RunInfo::default()
            };
            let path = folder.path().join(name);
            let mut writer = RecordWriter::create(&path, info).unwrap();
            if let Some(rank) = rank {
                writer.fact(&Fact {
                    t: 1.0,
                    key: "parallel.rank".into(),
                    value: rank.into(),
                    scope: None,
                    place: None,
                });
            }
            drop(writer);
            Record::open(&path).unwrap()
        };
        assert_eq!(rank_of(&record("torchrun", Some(4))), 4);
        assert_eq!(rank_of(&record("srun", None)), 1);
    }
}
