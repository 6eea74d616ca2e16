//! The loaders' worker processes, from the process tree.

use flatout_core::stats::mean;
use flatout_record::{EventKind, ProcessSample, RunData, Sample};
use std::collections::{BTreeMap, BTreeSet};

/// What one worker is on average over the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workers {
    /// The most that lived at once.
    pub count: usize,
    /// CPUs each used.
    pub cpus_each: Option<f64>,
    /// Memory that each shared with no one, at the end.
    pub private_bytes_each: Option<f64>,
    /// What of it came since its second reading, a second: at the first it had made no batch yet. `None` before a third one.
    pub private_growth_each_s: Option<f64>,
    /// And over how many seconds.
    pub private_growth_over_s: f64,
    /// Memory of the process that started them: what a forked worker shares with it at first.
    pub parent_bytes: Option<f64>,
    pub read_bytes_s: Option<f64>,
}

impl Workers {
    pub fn new(data: &RunData, (start_s, end_s): (f64, f64)) -> Self {
        let named = named(data);
        let mut count = 0;
        let (mut cpus, mut reads) = (Vec::new(), Vec::new());
        let mut private: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        let mut parent_bytes = None;
        for sample in data
            .samples
            .iter()
            .filter(|sample| sample.t > start_s && sample.t <= end_s)
        {
            let workers: Vec<(u32, &ProcessSample)> = workers_of(sample, &named);
            count = count.max(workers.len());
            reads.push(workers.iter().filter_map(|(_, worker)| worker.read_bytes_s).sum());
            for (pid, worker) in workers {
                cpus.extend(worker.cpus);
                let parent = worker.parent.and_then(|parent| sample.processes.get(&parent));
                parent_bytes = parent
                    .and_then(|parent| parent.rss_bytes)
                    .map(|bytes| bytes as f64)
                    .or(parent_bytes);
                if let Some(bytes) = worker.private_bytes {
                    // Readings are rare: an unchanged value is one that was not read again.
                    let readings = private.entry(pid).or_default();
                    if readings.last().is_none_or(|(_, known)| *known != bytes as f64) {
                        readings.push((sample.t, bytes as f64));
                    }
                }
            }
        }
        let average = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
        let last: Vec<f64> = private
            .values()
            .filter_map(|readings| readings.last().map(|(_, bytes)| *bytes))
            .collect();
        let growth: Vec<(f64, f64)> = private.values().filter_map(|readings| growth(readings)).collect();
        let rates: Vec<f64> = growth.iter().map(|(bytes, over_s)| bytes / over_s).collect();
        let spans: Vec<f64> = growth.iter().map(|(_, over_s)| *over_s).collect();
        Self {
            count,
            cpus_each: average(&cpus),
            private_bytes_each: average(&last),
            private_growth_each_s: average(&rates),
            private_growth_over_s: average(&spans).unwrap_or(0.0),
            parent_bytes,
            read_bytes_s: if count > 0 { average(&reads) } else { None },
        }
    }
}

/// Bytes gained from the second reading to the last, and the seconds between them.
fn growth(readings: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (&(first_s, first), &(last_s, last)) = (readings.get(1)?, readings.last()?);
    (last_s > first_s).then_some((last - first, last_s - first_s))
}

/// Processes that said themselves to be workers.
pub fn named(data: &RunData) -> BTreeSet<u32> {
    data.events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Process {
                pid,
                role: Some(role),
                ..
            } if role == "loader-worker" => Some(*pid),
            _ => None,
        })
        .collect()
}

/// The workers among a tick's processes. When none has said so: children with their parent's own command line (fork)
/// or multiprocessing's (spawn).
pub fn workers_of<'a>(sample: &'a Sample, named: &BTreeSet<u32>) -> Vec<(u32, &'a ProcessSample)> {
    let is_worker = |pid: &u32, process: &ProcessSample| {
        if !named.is_empty() {
            return named.contains(pid);
        }
        let Some(command) = process.command.as_deref() else {
            return false;
        };
        let parent = process.parent.and_then(|parent| sample.processes.get(&parent));
        let forked = parent.is_some_and(|parent| parent.command.as_deref() == Some(command));
        (forked && command.contains("python")) || command.contains("multiprocessing.spawn")
    };
    sample
        .processes
        .iter()
        .filter(|(pid, process)| is_worker(pid, process))
        .map(|(pid, p)| (*pid, p))
        .collect()
}
