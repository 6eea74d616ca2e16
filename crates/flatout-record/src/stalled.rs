//! Where the ranks of a program were that made no step for a long time.

use flatout_core::Place;
use serde::{Deserialize, Serialize};

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StalledRank {
    pub rank: u32,
    pub pid: u32,
    /// Its process is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Optimizer steps, and collectives of the default process group, that it has completed.
    pub steps: u64,
    pub collectives: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideCollective>,
    /// The training thread first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadStack>,
    /// Why its stacks could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// A collective under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InsideCollective {
    pub op: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Since when, in seconds.
    pub seconds: f64,
}

/// A thread's frames, `function (file:line)`, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadStack {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    pub frames: Vec<String>,
}
