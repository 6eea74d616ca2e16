//! What a probe says in words: JSON, one object a message.

use flatout_core::Place;
use flatout_record::EventKind;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
pub struct Message {
    /// When, in nanoseconds of the monotonic clock.
    #[serde(default)]
    pub at: u64,
    pub hello: Option<Hello>,
    pub event: Option<EventKind>,
    pub fact: Option<FactMessage>,
    pub window: Option<WindowMessage>,
    pub group: Option<GroupMessage>,
    pub collective: Option<CollectiveMessage>,
}

/// The process joined the default process group.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct GroupMessage {
    pub rank: u32,
    pub world: u32,
}

/// A line that calls a collective, told before its first one.
#[derive(Clone, Debug, Deserialize)]
pub struct CollectiveMessage {
    pub site: u64,
    /// `all_reduce`, `barrier` …; `ddp-gradients` and `ddp-buffers` for what DistributedDataParallel does by itself.
    pub op: String,
    pub place: Option<Place>,
    /// It only starts; what waits for its end is not seen.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    /// It runs on a GPU: the host only launches it.
    #[serde(default)]
    pub device: bool,
}

/// A GPU window that closed, or could not be opened.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct WindowMessage {
    /// The trace file; empty when there is none.
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub steps: u64,
    /// Why there is no trace, or not a whole one.
    #[serde(default)]
    pub reason: String,
}

/// The first message of a process.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Hello {
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub parent: u32,
    /// The rank among several processes that train together, where the environment tells it.
    pub rank: Option<u32>,
    pub world: Option<u32>,
    /// Ranks on this machine.
    pub local: Option<u32>,
    #[serde(default)]
    pub local_rank: Option<u32>,
    /// A loader's worker.
    #[serde(default)]
    pub worker: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FactMessage {
    pub key: String,
    #[serde(default)]
    pub value: Value,
    pub scope: Option<String>,
    pub place: Option<Place>,
}
