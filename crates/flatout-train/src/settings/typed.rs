//! All settings with their types: what the rest of the crate reads.

use super::Values;
use super::read::Read;
use crate::TrainError;
use flatout_data::generate::Recipe;
use flatout_data::{Policies, Written};
use std::path::PathBuf;

/// Mixed precision as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amp {
    Off,
    Tf32,
    Bf16,
    Fp16,
}

/// All settings with their types.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub data: Option<PathBuf>,
    pub label: Option<String>,
    pub entity: Option<String>,
    pub time: Option<String>,
    /// Microseconds since 1970 from which on samples are kept to validate on, instead of a share.
    pub validation_from_us: Option<i64>,
    /// How values are read.
    pub policies: Policies,
    /// Share of the samples that are kept to validate on.
    pub validation_ratio: f64,
    pub horizon: usize,
    pub task: String,
    pub model_type: String,
    pub epochs: u64,
    /// `None`: measured and chosen.
    pub batch_size: Option<usize>,
    pub keep_lr: bool,
    pub hidden_size: usize,
    /// The model's own number when absent.
    pub num_layers: Option<usize>,
    pub entity_embedding_dim: usize,
    pub sequence_length: usize,
    pub dropout: f64,
    pub learning_rate: f64,
    pub weight_decay: f64,
    pub optimizer: String,
    pub lr_schedule: String,
    pub warmup: u64,
    pub device: String,
    pub amp: Amp,
    pub gradient_accumulation_steps: usize,
    pub clip_norm: Option<f64>,
    pub eval_interval: u64,
    pub checkpoint_interval: u64,
    pub log_interval: u64,
    pub early_stopping: u64,
    pub limit: Option<usize>,
    pub memory_limit: Option<u64>,
    pub threads: Option<usize>,
    pub deterministic: bool,
    pub seed: u64,
    pub output_dir: PathBuf,
    pub resume: Option<PathBuf>,
    pub naive: bool,
    pub channels: usize,
    /// Width and height of pictures.
    pub input_size: Option<(usize, usize)>,
    pub flip: bool,
    pub crop_padding: usize,
    pub cache: bool,
    pub verify_cache: bool,
    /// Data to make first, unless they are there.
    pub recipe: Option<Recipe>,
}

impl Settings {
    /// Values that are absent take their defaults.
    pub fn of(values: &Values) -> Result<Self, TrainError> {
        let read = Read { values };
        let positive = |name| read.positive(name);
        let none_if_zero = |count: usize| (count > 0).then_some(count);
        Ok(Self {
            data: read.path("data"),
            label: read.text("label"),
            entity: read.text("entity"),
            time: read.text("time"),
            validation_from_us: read.instant("validation_from")?,
            policies: Policies::of(&Written {
                missing: &read.raw("missing"),
                bad_rows: &read.raw("bad_rows"),
                infinite: &read.raw("infinite"),
                column_type: &read.raw("column_type"),
            })?,
            validation_ratio: read.within("validation_ratio", 0.0, 0.9)?,
            horizon: positive("horizon")?,
            task: read.choice("task")?,
            model_type: read.choice("model_type")?,
            epochs: positive("epochs")? as u64,
            batch_size: match read.raw("batch_size").as_str() {
                "auto" => None,
                _ => Some(positive("batch_size")?),
            },
            keep_lr: read.flag("keep_lr")?,
            hidden_size: positive("hidden_size")?,
            num_layers: read
                .text("num_layers")
                .map(|_| positive("num_layers"))
                .transpose()?,
            entity_embedding_dim: read.count("entity_embedding_dim")?,
            sequence_length: positive("sequence_length")?,
            dropout: read.within("dropout", 0.0, 0.99)?,
            learning_rate: read.within("learning_rate", 0.0, 1e3)?,
            weight_decay: read.within("weight_decay", 0.0, 1e3)?,
            optimizer: read.choice("optimizer")?,
            lr_schedule: read.choice("lr_schedule")?,
            warmup: read.count("warmup")? as u64,
            device: read.text("device").unwrap_or_default(),
            amp: read.amp("amp")?,
            gradient_accumulation_steps: positive("gradient_accumulation_steps")?,
            clip_norm: Some(read.within("clip_norm", 0.0, 1e9)?).filter(|limit| *limit > 0.0),
            eval_interval: positive("eval_interval")? as u64,
            checkpoint_interval: positive("checkpoint_interval")? as u64,
            log_interval: read.count("log_interval")? as u64,
            early_stopping: read.count("early_stopping")? as u64,
            limit: none_if_zero(read.count("limit")?),
            memory_limit: read.bytes("memory_limit")?,
            threads: none_if_zero(read.count("threads")?),
            deterministic: read.flag("deterministic")?,
            seed: read.count("seed")? as u64,
            output_dir: read.path("output_dir").unwrap_or_default(),
            resume: read.path("resume"),
            naive: read.choice("pipeline")? == "naive",
            channels: read.channels("channels")?,
            input_size: read.size("input_size")?,
            flip: read.flag("flip")?,
            crop_padding: read.count("crop_padding")?,
            cache: read.flag("cache")?,
            verify_cache: read.flag("verify_cache")?,
            recipe: None,
        })
    }
}
