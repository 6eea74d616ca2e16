//! The trainer: nothing to tune, nothing that waits.
//!
//! | module | what |
//! | --- | --- |
//! | [`settings`] | every setting, declared once: flag, YAML key, default, help |
//! | [`configuration`] | YAML and flags to settings; unknown keys are refused, pointless ones explained |
//! | [`data`] | files to tables and samples |
//! | [`recipe`] | data that a training makes once by itself |
//! | [`target`] | what is predicted: a number, one of two classes, one of several |
//! | `augment` | random changes of training images, made on the host
//! | [`models`] | data and settings to a plan, one file a model |
//! | [`device`] | the session: CPU or CUDA |
//! | [`batch_size`], [`memory`] | how many samples a step is of, and what fits |
//! | [`threads`], [`speed`] | how many CPUs a step is fastest on, measured |
//! | [`length`] | how many passes a training has, where nobody said
//! | [`schedule`], [`metrics`] | learning rate over time; scores of an evaluation |
//! | [`trainer`] | the loop |
//! | [`folder`] | the output folder: one training at a time, nothing lost |
//! | [`grid`] | every combination of lists, one training each |
//! | [`checkpoint`] | parameters, moments and position, as safetensors |
//! | [`predict`] | a checkpoint on other data |
//! | [`recorder`] | the run record, in the phases of any other job |

mod augment;
pub mod batch_size;
pub mod checkpoint;
pub mod configuration;
pub mod data;
pub mod device;
mod effects;
mod error;
pub mod export;
pub mod folder;
pub mod grid;
mod indices;
pub mod length;
pub mod memory;
mod metric_files;
pub mod metrics;
pub mod models;
pub mod predict;
pub mod recipe;
pub mod recorder;
pub mod schedule;
pub mod settings;
pub mod speed;
pub mod target;
pub mod threads;
pub mod trainer;

pub use configuration::Configuration;
pub use error::TrainError;
pub use settings::{SETTINGS, Settings};
pub use trainer::{Outcome, Report, Trainer};
