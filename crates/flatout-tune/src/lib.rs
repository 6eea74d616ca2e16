//! What should change: a starting configuration before anything has been measured.
//!
//! - [`advise`]: starting values for this machine, each with its reason.
//! - [`machine`]: what this machine has; [`gpus`]: what the vendors say of their GPUs.
//! - [`settings`]: the names that programs, flags and configuration files give to the settings that matter.
//! - [`config_file`]: the values of a YAML, JSON or TOML file, and where they stand in it.
//!
//! It knows neither PyTorch nor our trainer.

pub mod advise;
pub mod config_file;
mod error;
pub mod gpus;
pub mod machine;
pub mod settings;

pub use error::TuneError;
