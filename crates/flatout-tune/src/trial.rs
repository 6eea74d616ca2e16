//! A trial: the program, run for a short while with some settings. What it is and how it is started others know
//! (`flatout-run` for programs); here stand only the question and the answer.

use flatout_core::stats::Interval;
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

/// A rate a second, with the range that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Pieces that a measurement is cut into for its interval: few enough that each holds several steps.
const PIECES: usize = 8;

impl Rate {
    /// The rate of the whole, with the interval of its pieces: `ends` are seconds since the beginning and what was done by then.
    pub fn of(ends: &[(f64, f64)]) -> Option<Self> {
        let &(seconds, done) = ends.last()?;
        if seconds <= 0.0 || done <= 0.0 {
            return None;
        }
        let mean = done / seconds;
        let pieces = PIECES.min(ends.len());
        let mut before = (0.0, 0.0);
        let mut rates = Vec::new();
        for piece in 1..=pieces {
            let end = ends[piece * ends.len() / pieces - 1];
            if end.0 > before.0 {
                rates.push((end.1 - before.1) / (end.0 - before.0));
            }
            before = end;
        }
        let half = Interval::of(&rates).map_or(mean, |interval| interval.high - interval.mean);
        // One piece alone has no interval: then it may be anything.
        let half = if half.is_finite() { half } else { mean };
        Some(Self {
            mean,
            low: (mean - half).max(0.0),
            high: mean + half,
        })
    }

    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// Half the interval's width, as a share of the mean.
    pub fn noise(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.mean.max(f64::MIN_POSITIVE)
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Several measurements of the same: their mean, the interval at least as wide as they lie apart.
    pub fn pooled(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = all.iter().map(|rate| rate.mean).sum::<f64>() / count;
        let half = all.iter().map(|rate| rate.high - rate.mean).sum::<f64>() / count / count.sqrt();
        let apart = all
            .iter()
            .map(|rate| (rate.mean - mean).abs())
            .fold(0.0, f64::max);
        let half = half.max(apart);
        (count > 0.0).then_some(Self {
            mean,
            low: (mean - half).max(0.0),
            high: mean + half,
        })
    }
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
    fn the_rate_is_of_the_whole_and_its_interval_of_the_pieces() {
        let steady: Vec<(f64, f64)> = (1..=40)
            .map(|i| (f64::from(i) * 0.1, f64::from(i) * 32.0))
            .collect();
        let rate = Rate::of(&steady).unwrap();
        assert!((rate.mean - 320.0).abs() < 1e-9 && rate.high - rate.low < 1e-6);
        let mut uneven = steady.clone();
        for (index, end) in uneven.iter_mut().enumerate() {
            end.0 += if index >= 20 { 1.0 } else { 0.0 };
        }
        let rate = Rate::of(&uneven).unwrap();
        assert!((rate.mean - 256.0).abs() < 1e-9 && rate.low < 240.0);
        assert!(Rate::of(&[]).is_none() && Rate::of(&[(0.0, 0.0)]).is_none());
    }

    #[test]
    fn settings_read_as_apply_wants_them() {
        let mut settings = Settings::default();
        settings.set("loader.num_workers", 2);
        settings.set("amp", "bf16");
        assert_eq!(settings.to_string(), "amp=bf16,loader.num_workers=2");
        assert_eq!(settings.without("amp").to_string(), "loader.num_workers=2");
    }

    #[test]
    fn repeated_measurements_never_look_surer_than_they_lie_apart() {
        let rate = |mean: f64| Rate {
            mean,
            low: mean - 1.0,
            high: mean + 1.0,
        };
        let pooled = Rate::pooled(&[rate(100.0), rate(120.0)]).unwrap();
        assert!((pooled.mean - 110.0).abs() < 1e-9 && pooled.low <= 100.0 && pooled.high >= 120.0);
        assert!(Rate::pooled(&[]).is_none());
    }
}
