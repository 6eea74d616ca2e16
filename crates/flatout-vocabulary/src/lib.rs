//! The settings that matter, each once. Everybody who names one comes here: `--apply` and the probe, the knobs of `tune`, advice and
//! checks, patches of the source, and the words of frameworks.
//!
//! - [`settings`]: the table; a new setting is one entry in it, and one function of the probe (`python/_flatout_apply/apply.py`) that
//!   puts it in force
//! - [`problems`]: the ids of problems, and the names they had before
//! - [`probe`]: the table as the probe reads it

pub mod probe;
pub mod problems;
pub mod settings;

pub use problems::{FORMER_IDS, canonical_id};
pub use settings::{Call, Framework, Kind, SETTINGS, Setting, Source, find, normal};
