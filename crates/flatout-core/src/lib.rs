//! The words every part of flatout shares. Nothing here reads a GPU, a record or a Python file.

pub mod calendar;
pub mod cgroup;
pub mod cpus;
pub mod error;
pub mod files;
pub mod finding;
pub mod histogram;
pub mod interrupt;
pub mod language;
pub mod leftover;
pub mod memory;
pub mod nvidia;
pub mod plural;
pub mod random;
pub mod rule;
pub mod secrets;
pub mod shell;
pub mod signals;
pub mod spelling;
pub mod stats;
pub mod text;
pub mod units;

pub use error::{Explain, Failure, Result};
pub use finding::{Confidence, Edit, Evidence, Finding, Fix, Gain, Kind, Linted, Place, Severity};
pub use language::{Language, Message};
pub use rule::RuleInfo;
