//! The runs of jobs that held GPUs, each once, and small: there may be millions.

use flatout_core::text::shortened;
use flatout_core::{Message, message};
use flatout_slurm::{HistoryRow, is_over, jobstats_gpus};
use std::collections::HashMap;

/// Of a job's name.
const LONGEST_NAME: usize = 60;
/// For what has no name.
const NOBODY: &str = "?";

/// Which jobs count, where Slurm was not asked for them alone.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub user: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
}

impl Filter {
    fn takes(&self, row: &HistoryRow) -> bool {
        // A list as Slurm takes it: `ann,bob`.
        let matches = |wanted: &Option<String>, value: &str| {
            wanted
                .as_ref()
                .is_none_or(|list| list.split(',').any(|name| name.trim() == value))
        };
        matches(&self.user, row.user)
            && matches(&self.account, row.account)
            && matches(&self.partition, row.partition)
    }
}

pub(super) struct Job {
    pub id: Box<str>,
    pub raw: u64,
    pub name: Box<str>,
    pub user: u32,
    pub account: u32,
    pub partition: u32,
    pub state: u32,
    pub gpus: u64,
    pub gpu_type: Option<u32>,
    pub start: Option<i64>,
    pub elapsed_s: f64,
    /// Mean utilization of each GPU, by jobstats.
    pub shares: Option<Box<[f64]>>,
}

/// Each name once.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    pub fn shown(&self, number: u32) -> String {
        let text = self.get(number);
        if text.is_empty() { NOBODY } else { text }.to_owned()
    }
}

/// The jobs of a cluster, added line by line.
#[derive(Default)]
pub struct Jobs {
    filter: Filter,
    pub(super) names: Names,
    pub(super) list: Vec<Job>,
    /// A run of a job is its cluster, its number and its start: numbers are used again, and a requeued job keeps its own.
    known: HashMap<(u32, u64, Option<i64>), u32>,
    pub(super) waiting: u64,
    pub(super) without_gpus: u64,
    pub(super) unreadable: u64,
    pub(super) repeated: u64,
}

impl Jobs {
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// How many runs of jobs with GPUs there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn add_unreadable(&mut self, lines: u64) {
        self.unreadable += lines;
    }

    pub fn add(&mut self, row: &HistoryRow) {
        if row.is_step() || !self.filter.takes(row) {
            return;
        }
        let state = row.state.split(' ').next().unwrap_or("");
        let (gpus, gpu_type) = row.gpus();
        let elapsed_s = row.elapsed_s.unwrap_or(0.0);
        if state == "PENDING" {
            self.waiting += 1;
            return;
        }
        if gpus == 0 {
            self.without_gpus += 1;
            return;
        }
        // Without a number it cannot be told from others: `4711_[3-9]` has not begun.
        let number = row.raw_id.split(['_', '+', '[']).next().unwrap_or("");
        let Ok(raw) = number.parse::<u64>() else {
            self.unreadable += 1;
            return;
        };
        let cluster = self.names.number(row.cluster);
        let job = Job {
            id: row.id.into(),
            raw,
            name: shortened(row.name, LONGEST_NAME).into(),
            user: self.names.number(row.user),
            account: self.names.number(row.account),
            partition: self.names.number(row.partition),
            state: self.names.number(state),
            gpus,
            gpu_type: gpu_type.map(|kind| self.names.number(kind)),
            start: row.start,
            elapsed_s,
            shares: jobstats_gpus(row.comment).map(Vec::into_boxed_slice),
        };
        // Tasks of an array have numbers of their own only in `JobIDRaw`; a file without that column has `4711_3`.
        let key_id = if row.raw_id.len() == number.len() {
            raw
        } else {
            hash_of(row.raw_id)
        };
        let key = (cluster, key_id, row.start);
        match self.known.get(&key) {
            Some(index) => {
                self.repeated += 1;
                // The later one of two looks at a running job.
                if let Some(known) = self.list.get_mut(*index as usize)
                    && (job.elapsed_s, job.shares.is_some()) > (known.elapsed_s, known.shares.is_some())
                {
                    *known = job;
                }
            }
            None => {
                self.known.insert(key, self.list.len() as u32);
                self.list.push(job);
            }
        }
    }
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn is_running(state: &str) -> bool {
    !is_over(state) && !state.is_empty() && !is_requeued(state)
}

pub(super) fn is_requeued(state: &str) -> bool {
    matches!(
        state,
        "REQUEUED" | "PREEMPTED" | "NODE_FAIL" | "SPECIAL_EXIT" | "REVOKED"
    )
}

pub(super) fn notes(unreadable: u64, repeated: u64) -> Vec<Message> {
    let mut notes = Vec::new();
    if unreadable > 0 {
        notes.push(message!(
            en: "{unreadable} lines could not be read and are not counted",
            zh: "有 {unreadable} 行无法读取，未计入"
        ));
    }
    if repeated > 0 {
        notes.push(message!(
            en: "{repeated} lines repeat a run of a job that was already counted",
            zh: "有 {repeated} 行重复了已计入的作业运行"
        ));
    }
    notes
}
