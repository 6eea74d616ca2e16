//! The processes of the run, one row each: what the main process and every loader worker did on average.

use flatout_record::{Event, EventKind, ProcessSample, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessRow {
    pub pid: u32,
    pub command: String,
    /// `main`, `loader-worker` …, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub first_s: f64,
    pub last_s: f64,
    /// CPUs used, on average over its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// The most memory that it shared with no one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes_s: Option<f64>,
    /// Share of its samples in which it waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_wait: Option<f64>,
}

#[derive(Default)]
struct Sums {
    row: ProcessRow,
    seen: u32,
    cpus: (f64, u32),
    reads: (f64, u32),
    states: (u32, u32),
}

impl Sums {
    fn add(&mut self, t: f64, process: &ProcessSample) {
        if self.seen == 0 {
            self.row.first_s = t;
        }
        self.seen += 1;
        self.row.last_s = t;
        if self.row.command.is_empty() {
            self.row.command = process.command.clone().unwrap_or_default();
        }
        if let Some(cpus) = process.cpus {
            self.cpus = (self.cpus.0 + cpus, self.cpus.1 + 1);
        }
        if let Some(bytes) = process.read_bytes_s {
            self.reads = (self.reads.0 + bytes, self.reads.1 + 1);
        }
        if let Some(state) = &process.state {
            self.states = (self.states.0 + u32::from(state == "D"), self.states.1 + 1);
        }
        self.row.private_bytes = self.row.private_bytes.max(process.private_bytes);
    }

    fn done(mut self) -> ProcessRow {
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
        self.row.cpus = mean(self.cpus);
        self.row.read_bytes_s = mean(self.reads);
        self.row.disk_wait = mean((f64::from(self.states.0), self.states.1));
        self.row
    }
}

/// Takes samples one by one.
#[derive(Default)]
pub struct Builder {
    all: BTreeMap<u32, Sums>,
}

impl Builder {
    pub fn sample(&mut self, sample: &Sample) {
        for (pid, process) in &sample.processes {
            let sums = self.all.entry(*pid).or_default();
            sums.row.pid = *pid;
            sums.add(sample.t, process);
        }
    }

    /// By CPU time used, most first.
    pub fn done(mut self, events: &[Event]) -> Vec<ProcessRow> {
        for event in events {
            if let EventKind::Process {
                pid,
                role: Some(role),
                ..
            } = &event.kind
                && let Some(sums) = self.all.get_mut(pid)
            {
                sums.row.role = Some(role.clone());
            }
        }
        let mut rows: Vec<ProcessRow> = self.all.into_values().map(Sums::done).collect();
        let used = |row: &ProcessRow| row.cpus.unwrap_or(0.0) * (row.last_s - row.first_s).max(1.0);
        rows.sort_by(|a, b| used(b).total_cmp(&used(a)));
        rows
    }
}
