//! Where the time of a loader's workers goes: reading, decoding, transforming line by line, collating, waiting for work.
//!
//! One worker of each loader is sampled; its samples stand for all of them.

use super::frame::Frame;
use super::source;
use flatout_core::{Message, Place, message};
use flatout_record::{Blocked, RunData, StackCount};
use serde::Serialize;
use std::collections::BTreeMap;

/// Fewer samples of workers say nothing.
const FEWEST_SAMPLES: u64 = 20;

/// What a worker does in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Files, archives, databases.
    Read,
    /// Images, audio, JSON, compressed data.
    Decode,
    /// Any other line of the data set.
    Transform,
    Collate,
    /// Handing the batch to the training process.
    Send,
    /// Waiting for the next indices: the worker could do more.
    Idle,
    /// Starting up, or a stack too rare to be kept whole.
    Other,
}

impl Task {
    pub fn name(self) -> Message {
        match self {
            Self::Read => message!(en: "reading files", zh: "读取文件"),
            Self::Decode => message!(en: "decoding", zh: "解码"),
            Self::Transform => message!(en: "transforming", zh: "变换"),
            Self::Collate => message!(en: "collating", zh: "合并（collate）"),
            Self::Send => message!(en: "sending the batch", zh: "发送 batch"),
            Self::Idle => message!(en: "idle", zh: "空闲"),
            Self::Other => message!(en: "other", zh: "其他"),
        }
    }
}

/// The account of the sampled workers within the steady part.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WorkerAccount {
    /// Sampled time; shares are of it.
    pub seconds: f64,
    pub samples: u64,
    /// By time, the largest first.
    pub rows: Vec<WorkerRow>,
}

/// A part of a worker's time: one task at one line of the user's code.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WorkerRow {
    pub task: Task,
    pub seconds: f64,
    pub share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The library function that the line called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl WorkerAccount {
    /// `None` without samples of workers.
    pub fn new(data: &RunData, (start_s, end_s): (f64, f64)) -> Option<Self> {
        type Key = (Task, Option<Place>);
        type Calls = BTreeMap<(Option<String>, Option<String>), f64>;
        let ticks = data
            .stacks
            .iter()
            .filter(|tick| tick.t > start_s && tick.t <= end_s + 60.0);
        let mut sums: BTreeMap<Key, Calls> = BTreeMap::new();
        let mut samples = 0;
        for stack in ticks.flat_map(|tick| &tick.stacks).filter(|stack| stack.worker) {
            let frames: Vec<Frame> = stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect();
            let last = frames.iter().rposition(Frame::is_users);
            let line = last.map(|at| &frames[at]);
            let via = last.and_then(|at| frames.get(at + 1)).map(Frame::qualified);
            let key = (task(stack, &frames), line.map(Frame::place));
            let called = (line.map(|frame| frame.function.clone()), via);
            samples += stack.count;
            *sums.entry(key).or_default().entry(called).or_default() += stack.time_ms() / 1e3;
        }
        let seconds: f64 = sums.values().flat_map(BTreeMap::values).sum();
        if samples < FEWEST_SAMPLES || seconds <= 0.0 {
            return None;
        }
        let mut rows: Vec<WorkerRow> = sums
            .into_iter()
            .map(|((task, place), calls)| {
                let spent: f64 = calls.values().sum();
                // A line calls several functions: the costliest is named.
                let top = calls.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
                let (function, via) = top.map(|(called, _)| called).unwrap_or_default();
                WorkerRow {
                    task,
                    seconds: spent,
                    share: spent / seconds,
                    text: place.as_ref().and_then(|place| source(data, place)),
                    place,
                    function,
                    via,
                }
            })
            .collect();
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Some(Self {
            seconds,
            samples,
            rows,
        })
    }

    /// Tasks with their share, the largest first.
    pub fn by_task(&self) -> Vec<(Task, f64)> {
        let mut shares: BTreeMap<Task, f64> = BTreeMap::new();
        for row in &self.rows {
            *shares.entry(row.task).or_default() += row.share;
        }
        let mut shares: Vec<(Task, f64)> = shares.into_iter().collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

const FETCH: &str = "torch/utils/data/_utils/fetch.py";
const COLLATE: &str = "torch/utils/data/_utils/collate.py";

fn task(stack: &StackCount, frames: &[Frame]) -> Task {
    let Some(fetch) = frames.iter().position(|frame| frame.in_file(FETCH)) else {
        return between_batches(stack, frames);
    };
    // Older interpreters show the comprehension over the indices as a frame of its own.
    let below = &frames[fetch + 1..];
    let of_loader = below.iter().take_while(|frame| frame.in_file(FETCH)).count();
    let below = &below[of_loader..];
    let Some(first) = below.first() else {
        return Task::Other;
    };
    if first.in_file(COLLATE) || !is_item(first) {
        return Task::Collate;
    }
    in_item(stack, below)
}

/// A frame of the data set, not of the collate function.
fn is_item(frame: &Frame) -> bool {
    let name = frame.function.rsplit('.').next().unwrap_or_default();
    matches!(name, "__getitem__" | "__getitems__" | "__next__" | "__iter__")
        || frame.function.contains("__getitem__.")
        || frame.function.contains("__getitems__.")
}

fn in_item(stack: &StackCount, frames: &[Frame]) -> Task {
    const READERS: [&str; 11] = [
        "zipfile",
        "tarfile",
        "sqlite3",
        "h5py",
        "pyarrow",
        "lmdb",
        "zarr",
        "fsspec",
        "pathlib",
        "webdataset",
        "shutil",
    ];
    const DECODERS: [&str; 13] = [
        "PIL",
        "json",
        "gzip",
        "bz2",
        "lzma",
        "pickle",
        "csv",
        "av",
        "soundfile",
        "torchaudio",
        "librosa",
        "imageio",
        "codecs",
    ];
    if matches!(stack.blocked, Some(Blocked::File | Blocked::Flush)) {
        return Task::Read;
    }
    let last = frames.iter().rposition(Frame::is_users);
    let called = &frames[last.map_or(0, |at| at + 1)..];
    // Of a decoder that reads on, the innermost known one counts.
    let known = called.iter().rev().find_map(|frame| {
        let package = frame.package()?;
        let file = frame.file.as_str();
        if DECODERS.contains(&package) || file.contains("torchvision/io/") {
            return Some(Task::Decode);
        }
        let reads = READERS.contains(&package)
            || file.contains("pandas/io/")
            || file.contains("numpy/lib/_npyio")
            || file.contains("numpy/lib/npyio")
            || frame.in_file("torch/serialization.py");
        reads.then_some(Task::Read)
    });
    known.unwrap_or(Task::Transform)
}

/// In the worker's own loop: waiting for indices, or passing the batch on.
fn between_batches(stack: &StackCount, frames: &[Frame]) -> Task {
    let Some(innermost) = frames.last() else {
        return Task::Other;
    };
    let waits =
        |frame: &Frame| frame.in_file("selectors.py") || frame.in_file("multiprocessing/connection.py");
    let sends = |frame: &Frame| {
        let name = frame.function.rsplit('.').next().unwrap_or_default();
        matches!(name, "put" | "notify" | "_feed" | "dumps" | "reduce_storage")
    };
    if frames.iter().any(sends) {
        return Task::Send;
    }
    if waits(innermost) || matches!(stack.blocked, Some(Blocked::Poll)) {
        return Task::Idle;
    }
    Task::Other
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::StackTick;

    const LOOP: &str = "_worker_loop (/v/site-packages/torch/utils/data/_utils/worker.py:9)";
    const FETCHER: &str = "_MapDatasetFetcher.fetch (/v/site-packages/torch/utils/data/_utils/fetch.py:52)";

    fn stack(frames: &[&str], ms: f64) -> StackCount {
        StackCount {
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            count: 10,
            ms,
            worker: true,
            ..StackCount::default()
        }
    }

    #[test]
    fn every_second_of_a_worker_has_one_task() {
        let item = "Rows.__getitem__ (train.py:20)";
        let stacks = vec![
            stack(&[LOOP, FETCHER, item], 100.0),
            stack(
                &[
                    LOOP,
                    FETCHER,
                    item,
                    "load (/v/site-packages/torch/serialization.py:3)",
                ],
                200.0,
            ),
            stack(
                &[
                    LOOP,
                    FETCHER,
                    item,
                    "loads (/u/lib/python3.12/json/__init__.py:3)",
                ],
                300.0,
            ),
            stack(&[LOOP, FETCHER, "together (train.py:40)"], 50.0),
            stack(
                &[
                    LOOP,
                    FETCHER,
                    "default_collate (/v/site-packages/torch/utils/data/_utils/collate.py:7)",
                ],
                50.0,
            ),
            stack(
                &[
                    LOOP,
                    "get (/u/lib/python3.12/multiprocessing/queues.py:1)",
                    "select (/u/lib/python3.12/selectors.py:415)",
                ],
                250.0,
            ),
            stack(
                &[LOOP, "Queue.put (/u/lib/python3.12/multiprocessing/queues.py:90)"],
                40.0,
            ),
            stack(&[], 10.0),
        ];
        let data = RunData {
            stacks: vec![StackTick {
                t: 5.0,
                stacks,
                descheduled_ms: None,
            }],
            ..RunData::default()
        };
        let account = WorkerAccount::new(&data, (0.0, 10.0)).unwrap();
        let sum: f64 = account.rows.iter().map(|row| row.share).sum();
        assert!((sum - 1.0).abs() < 1e-9 && (account.seconds - 1.0).abs() < 1e-9);
        let share = |task: Task| {
            let found = account.by_task();
            found
                .iter()
                .find(|(one, _)| *one == task)
                .map_or(0.0, |(_, share)| *share)
        };
        let close = |task: Task, wanted: f64| assert!((share(task) - wanted).abs() < 1e-9, "{task:?}");
        close(Task::Transform, 0.1);
        close(Task::Read, 0.2);
        close(Task::Decode, 0.3);
        close(Task::Collate, 0.1);
        close(Task::Idle, 0.25);
        close(Task::Send, 0.04);
        close(Task::Other, 0.01);
        assert_eq!(account.rows[0].via.as_deref(), Some("json.loads"));
    }

    #[test]
    fn no_workers_no_account() {
        assert!(WorkerAccount::new(&RunData::default(), (0.0, 10.0)).is_none());
    }
}
