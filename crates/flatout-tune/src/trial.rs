//! A trial: the program, run for a short while with some settings. What it is and how it is started others know
//! (`flatout-run` for programs); here stand only the question and the answer.

pub use flatout_compare::Rate;

use flatout_core::{Message, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Settings by the names `--apply` knows, on top of what the program sets itself. Ordered, so that equal ones read equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<String, String>);

impl Settings {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.0.insert(key.to_owned(), value.to_string());
    }

    /// These with others laid over them.
    #[must_use]
    pub fn with(&self, changes: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(changes.0.clone());
        all
    }

    /// These without a key.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let mut all = self.clone();
        all.0.remove(key);
        all
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, String)> for Settings {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(pairs: T) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// As `--apply` wants them.
impl std::fmt::Display for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        f.write_str(&pairs.join(","))
    }
}

/// How long a trial may take.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Steps before the clock starts.
    pub warm_up_steps: u64,
    /// Steps to measure; more, when they take less than `seconds` together.
    pub steps: u64,
    pub seconds: f64,
    /// Measured no longer than this, once five steps are done.
    pub longest_s: f64,
    /// The rate's interval is to be no wider than this share of it, either side; beside a clearly different best, three times that.
    pub noise: f64,
    /// Measured no longer than this for a narrower interval.
    pub settle_s: f64,
    /// The best rate so far, with its interval.
    pub best: Option<Rate>,
    /// Take some steps of other sizes as well, up to so many times the batch; 0 takes none.
    pub sizes: u64,
    /// After those, some fed by so many workers, each with the most threads for the steps beside them; on a GPU, batches alone.
    pub workers: Vec<(u64, Option<u64>)>,
    /// Those workers do not walk what they have from the program when they collect garbage.
    pub freeze: bool,
    /// After those, some steps with one of these changed, as `--apply` wants them.
    pub variants: Vec<String>,
    /// Give up when it is clearly below this rate.
    pub beat: Option<f64>,
    /// A program that does no step for so long hangs.
    pub patience_s: f64,
}

/// What a trial measured, over the whole loop: loader, evaluation and all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub steps: u64,
    /// Samples in those steps; `None` when the program does not tell, then the rate is in steps a second.
    pub samples: Option<u64>,
    pub seconds: f64,
    pub rate: Rate,
    /// Of those seconds, waiting for batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Of those seconds, evaluating and saving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside_s: Option<f64>,
    /// The part of the program's CPU time that went to pages touched for the first time: memory that was given back and taken again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_pages: Option<f64>,
    /// Steps of other sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
    /// Steps fed by other workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fed: Vec<Fed>,
    /// Batches alone, by other workers: on a GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supply: Vec<Supply>,
    /// Steps with one setting changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// The record's second in which the measurement ended; what comes later are steps of other sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// What the GPUs take awake and idle, and may take at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_w: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_w: Option<f64>,
    /// Samples seen, and the loss there. `None` for a loss that is not a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<(u64, Option<f64>)>,
    /// Stopped early, because it was clearly slower.
    #[serde(default)]
    pub cut: bool,
    /// Settings that were asked for and did not come into force, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<(String, Message)>,
    /// The trial's run record.
    pub record: PathBuf,
}

impl Measurement {
    pub fn samples_a_step(&self) -> Option<f64> {
        Some(self.samples? as f64 / self.steps.max(1) as f64).filter(|samples| *samples > 0.0)
    }
}

/// Steps with a part of each batch, or all of it several times: what a step takes beside waiting for its batch (on a GPU with nothing
/// hidden behind that wait), how long the wait is where the batch is made in between, and the memory it would need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    pub samples: u64,
    pub own_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Steps whose batches real workers made, on a CPU that both share: the whole step but for evaluating and saving. All of a trial were
/// taken in turn, so that they can be held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fed {
    pub workers: u64,
    /// PyTorch's, for the steps.
    pub threads: u64,
    pub samples: u64,
    pub step_s: f64,
}

/// Batches that so many workers supplied while they were asked for nothing else: seconds from batch to batch, and what each costs the
/// training process in CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Supply {
    pub workers: u64,
    pub samples: u64,
    pub batch_s: f64,
    pub host_s: f64,
}

/// Some steps with one setting changed, in turn with plain ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// As `--apply` wants it.
    pub setting: String,
    /// What a step's own part takes with it, as a part of what it takes without.
    pub own_ratio: f64,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Outcome {
    Measured(Box<Measurement>),
    OutOfMemory {
        message: String,
        /// The batch that did not fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<u64>,
    },
    /// It ended with an error of its own; the last lines it printed.
    Failed {
        how: Message,
        tail: String,
    },
    /// It ran and ended, but not enough steps were seen.
    TooShort {
        steps: u64,
        tail: String,
    },
    /// No step for so many seconds.
    Hung {
        seconds: f64,
        tail: String,
    },
    /// The user has had enough.
    Interrupted,
}

impl Outcome {
    pub fn measured(&self) -> Option<&Measurement> {
        match self {
            Self::Measured(measured) => Some(measured),
            _ => None,
        }
    }
}

/// Whoever can run the program.
pub trait Trial {
    fn run(&mut self, settings: &Settings, plan: &Plan) -> Result<Outcome>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_as_apply_wants_them() {
        let mut settings = Settings::default();
        settings.set("loader.num_workers", 2);
        settings.set("amp", "bf16");
        assert_eq!(settings.to_string(), "amp=bf16,loader.num_workers=2");
        assert_eq!(settings.without("amp").to_string(), "loader.num_workers=2");
    }
}
