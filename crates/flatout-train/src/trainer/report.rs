//! What a training says while it runs and when it ends. No text is made here.

use crate::metrics::Scores;
use flatout_core::Message;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a training tells the one who watches it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Report {
    /// Before the first step: everything that is really in force.
    Start {
        device: String,
        precision: String,
        model: String,
        parameters: usize,
        samples: usize,
        validation_samples: usize,
        /// Samples of one update, and how many of them go through the model at once.
        batch_size: usize,
        micro_batch_size: usize,
        learning_rate: f64,
        steps_an_epoch: u64,
        data_bytes: usize,
        memory_bytes: u64,
        seconds: f64,
        #[serde(skip)]
        notes: Vec<Message>,
    },
    Steps {
        phase: String,
        epoch: u64,
        epochs: u64,
        step: u64,
        of: u64,
        samples_s: f64,
        /// The mean since the last of these.
        loss: Option<f64>,
        /// Of the device: `None` where it cannot be read.
        busy_ratio: Option<f64>,
        /// Arithmetic done as a share of what the device reaches in large products; `None` where `flatout bench` has not measured it.
        peak_ratio: Option<f64>,
        memory_bytes: Option<u64>,
        power_w: Option<f64>,
        seconds_left: f64,
        /// `log_interval` asked for it; all others are signs of life.
        #[serde(skip)]
        line: bool,
    },
    Epoch {
        phase: String,
        epoch: u64,
        epochs: u64,
        /// Steps of the whole run so far.
        step: u64,
        loss: f64,
        samples_s: f64,
        seconds: f64,
        rate: f64,
        scores: Option<Scores>,
        /// Of each target by itself, where there are several.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        targets: BTreeMap<String, Scores>,
    },
    /// A checkpoint stands on the disk. Epochs behind it may have been told before.
    Saved {
        path: PathBuf,
        best: bool,
        /// Where there are several.
        phase: Option<String>,
        /// Epochs of the phase that are in it.
        epoch: u64,
    },
    Stopped {
        early: bool,
    },
    /// The best checkpoint on the test part, at the end.
    Test {
        scores: Scores,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        targets: BTreeMap<String, Scores>,
    },
    /// Something went wrong that does not end the training.
    Warning {
        message: Message,
    },
}

/// How it ended.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub scores: Option<Scores>,
    /// The same of each target by itself, where there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, Scores>,
    /// The score that decides, and the best of it.
    pub selected: String,
    pub best: Option<f64>,
    /// All scores of that evaluation, and its loss.
    pub best_scores: Option<Scores>,
    pub best_loss: Option<f64>,
    /// Of the best checkpoint on the test part, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_scores: Option<Scores>,
    /// `None` where nothing was trained.
    pub samples_s: Option<f64>,
    pub seconds: f64,
    pub output_dir: PathBuf,
    /// Ctrl-C: saved, to be resumed.
    pub interrupted: bool,
}
