//! The checklist, run by the machine: before a training, from its configuration and this machine; after it, from its record.
//! Each item passes, warns, fails or is skipped, with the number and the limit.

mod after;
mod before;
mod limits;

pub use after::{after, against};
pub use before::{Before, before};
pub use limits::Limits;

use flatout_core::Message;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    /// Could not be looked at.
    Skipped,
    Warn,
    Fail,
}

#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// `workers`, `gpu-memory` …; never changes.
    pub id: &'static str,
    pub status: Status,
    pub what: Message,
    /// What was found, and what was held against it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub found: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Message>,
}

impl Item {
    fn new(id: &'static str, what: Message, status: Status) -> Self {
        Self {
            id,
            status,
            what,
            found: String::new(),
            limit: String::new(),
            why: None,
        }
    }

    fn skipped(id: &'static str, what: Message, why: Message) -> Self {
        Self {
            why: Some(why),
            ..Self::new(id, what, Status::Skipped)
        }
    }

    #[must_use]
    fn found(mut self, found: impl Into<String>, limit: impl Into<String>) -> Self {
        self.found = found.into();
        self.limit = limit.into();
        self
    }

    #[must_use]
    fn because(mut self, why: Message) -> Self {
        self.why = Some(why);
        self
    }
}

/// `good` passes, otherwise `otherwise`.
fn status(good: bool, otherwise: Status) -> Status {
    if good { Status::Pass } else { otherwise }
}

/// The worst of a list; a list of nothing passes.
pub fn worst(items: &[Item]) -> Status {
    items.iter().map(|item| item.status).max().unwrap_or(Status::Pass)
}

#[cfg(test)]
fn state(items: &[Item], id: &str) -> Status {
    items
        .iter()
        .find(|item| item.id == id)
        .map(|item| item.status)
        .unwrap()
}
