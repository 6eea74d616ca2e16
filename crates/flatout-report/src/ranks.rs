//! The ranks of one job side by side: who holds the others up.

use flatout_core::{Message, message, units};
use flatout_diagnose::analysis::collectives::Collectives;
use flatout_record::{self as record, JobInfo, Phase, Record, RunData};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

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
    let (wait_s, transfer_s) = collectives.map_or((None, None), |all| (all.wait_s(), all.transfer_s()));
    let own_ms = sum(Phase::Data) + sum(Phase::Transfer) + sum(Phase::Compute) + sum(Phase::Other);
    let within_s = wait_s.unwrap_or(0.0) + transfer_s.unwrap_or(0.0);
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
                let rank = rank_of(record);
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
        for row in &mut self.rows {
            let rows = compared.iter().flat_map(|ranks| &ranks.rows);
            if let Some(steady) = rows.clone().find(|steady| steady.rank == row.rank) {
                row.steps = steady.steps;
                row.step_ms = Some(steady.step_ms);
                (row.wait_ms, row.transfer_ms) = (steady.wait_ms, steady.transfer_ms);
                row.own_ms = steady.own_ms.or(row.own_ms);
                row.data_ms = Some(steady.data_ms);
                row.straggler = steady.slow;
            }
        }
        self.notes
            .extend(compared.into_iter().flat_map(|ranks| ranks.notes.clone()));
        self
    }

    /// The ranks of the job that a record is of: the records beside it with the same job, and those inside it.
    pub fn beside(record: &Record) -> Self {
        let job = record
            .info
            .job
            .as_ref()
            .filter(|job| job.fields.contains_key("rank"));
        let Some(job) = job else {
            return if record.ranks().is_empty() {
                Self::default()
            } else {
                Self::of(std::slice::from_ref(record))
            };
        };
        let folder = record.folder().parent().unwrap_or(Path::new("."));
        let same = |other: &JobInfo| other.id == job.id && other.system == job.system;
        let records: Vec<Record> = record::list(folder)
            .iter()
            .filter(|entry| entry.info.job.as_ref().is_some_and(same))
            .filter_map(|entry| Record::open(&entry.folder).ok())
            .collect();
        Self::of(&records)
    }
}

/// The rank a record is of; 0 for a run with one.
pub fn rank_of(record: &Record) -> u32 {
    let rank = record.info.job.as_ref().and_then(|job| job.fields.get("rank"));
    rank.and_then(|rank| rank.parse().ok()).unwrap_or(0)
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
    use flatout_record::{PhaseTime, StepTick};

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
}
