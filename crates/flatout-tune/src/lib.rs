//! What should change: a starting configuration before anything has been measured, and the search for a better one by measuring.
//!
//! - [`search`]: diagnoses, tries what can act on the causes found, keeps what helps; [`knobs`]: one file a knob.
//! - [`trial`]: what is asked of whoever can run a program; [`guard`]: the loss must not suffer; [`objective`], [`limits`].
//! - [`session`]: a search on disk, to go on with; the lock.
//! - [`check`]: the checklist before a start and on a record. [`ceilings`]: measured limits against the vendors' figures.
//! - [`advise`]: starting values for this machine, each with its reason.
//! - [`disk`]: room and page cache. [`machine`]: what this machine has; [`gpus`]: what the vendors say of their GPUs.
//! - [`config_file`]: the values of a YAML, JSON or TOML file, and where they stand in it.
//!
//! It knows neither PyTorch nor our trainer.

pub mod advise;
pub mod ceilings;
pub mod check;
pub mod config_file;
pub mod disk;
mod error;
pub mod gpus;
pub mod guard;
pub mod knobs;
pub mod limits;
pub mod machine;
pub mod objective;
pub mod search;
pub mod session;
pub mod trial;

pub use error::TuneError;
