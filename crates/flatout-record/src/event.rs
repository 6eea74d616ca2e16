//! What happened, one line an event.

use super::StalledRank;
use flatout_core::Place;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Event {
    /// Seconds since the start, at the event's end where it lasts.
    pub t: f64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// An epoch ended.
    Epoch {
        number: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<f64>,
    },
    Eval {
        duration_ms: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batches: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
    },
    Checkpoint {
        duration_ms: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
    },
    OutOfMemory {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
    },
    /// Blocking reads of the device at one source line since its last line here.
    Sync {
        /// `item`, `cpu`, `numpy`, `tolist`, `bool`, `print`, `synchronize` …
        what: String,
        place: Place,
        count: u64,
        blocked_ms: f64,
        /// Optimizer steps in the same time; a count near it is "every step".
        steps: u64,
        /// `cuda`: the host waited there. `cpu`: the tensor lay in host memory and nothing was waited for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
    },
    /// A loader's iterator was made, with the time until its first batch.
    LoaderStart {
        /// Which loader; facts of the scope `loader.N` belong to it.
        loader: u64,
        workers: u64,
        duration_ms: f64,
    },
    /// What the main thread took from a loader since the last such line.
    LoaderUse {
        loader: u64,
        batches: u64,
        wait_ms: f64,
        /// For evaluation, not for training steps.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        eval: bool,
    },
    /// What preparing the loader's batches cost since the last such line, all workers together; without workers,
    /// what it cost the main thread.
    Workers {
        loader: u64,
        /// Time in the data set's `__getitem__`.
        fetch_ms: f64,
        /// Time in `collate_fn`.
        collate_ms: f64,
        /// Time collecting garbage, nearly all of it within the two; where worker processes tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        garbage_ms: Option<f64>,
        batches: u64,
    },
    Compile {
        /// `error`, `graph-break`, `recompile`, `compiled`.
        what: String,
        count: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        /// How long the compiler took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<f64>,
    },
    /// Collectives that one line of this rank called since its last line here.
    Collective {
        /// `all_reduce`, `barrier` …; `ddp-gradients`, `ddp-buffers`.
        op: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        count: u64,
        /// Those of them that every rank's stamps were compared for.
        aligned: u64,
        /// Time from arrival to the end, of all of them.
        ms: f64,
        /// Of the aligned ones: until the last rank arrived, and after that. Absent where the host only starts them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transfer_ms: Option<f64>,
        /// How often this rank was the last, and by how much later than the median of the others it arrived then.
        #[serde(default, skip_serializing_if = "is_zero")]
        last: u64,
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        late_ms: f64,
        /// Ranks compared, of how many there are.
        ranks: u32,
        world: u32,
    },
    GarbageCollection {
        count: u64,
        duration_ms: f64,
    },
    /// A process of the tree began or ended.
    Process {
        pid: u32,
        began: bool,
        /// `main`, `loader-worker` …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// No step, batch or collective for this long: where every rank was.
    Stalled {
        seconds: f64,
        ranks: Vec<StalledRank>,
    },
    /// After a stall of this long it goes on.
    Resumed {
        seconds: f64,
    },
    GpuLost {
        gpu: u32,
        message: String,
    },
    /// Lines that could not be written (a full disk), since the last such line.
    Lost {
        lines: u64,
        message: String,
    },
    /// A word from the probe, the user's program or flatout.
    Note {
        source: String,
        text: String,
    },
    /// An event of a newer flatout.
    #[serde(other)]
    Unknown,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_zero_ms(ms: &f64) -> bool {
    *ms == 0.0
}
