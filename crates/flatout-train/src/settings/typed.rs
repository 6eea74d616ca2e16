//! All settings with their types: what the rest of the crate reads.

use super::Values;
use super::read::Read;
use crate::metrics::Select;
use crate::{TrainError, length};
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

/// A number for columns: for all of them, and for single ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerColumn<T = usize> {
    pub all: Option<T>,
    pub columns: Vec<(String, T)>,
}

impl<T: Copy> PerColumn<T> {
    /// The last word about a column counts.
    pub fn of(&self, column: &str) -> Option<T> {
        self.find(column).copied()
    }
}

impl<T> PerColumn<T> {
    pub fn find(&self, column: &str) -> Option<&T> {
        let named = self.columns.iter().rev().find(|(name, _)| name == column);
        named.map(|(_, value)| value).or(self.all.as_ref())
    }
}

/// Weights of classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassWeight {
    pub balanced: bool,
    /// A class, or `label.class`.
    pub classes: Vec<(String, f64)>,
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
    /// Microseconds since 1970 from which on samples are the test part.
    pub test_from_us: Option<i64>,
    /// Held-out samples in files of their own.
    pub validation_data: Option<PathBuf>,
    pub test_data: Option<PathBuf>,
    /// Share of the samples that are scored at the end.
    pub test_ratio: f64,
    /// How values are read.
    pub policies: Policies,
    /// Share of the samples that are kept to validate on.
    pub validation_ratio: f64,
    pub horizon: usize,
    /// Rows before the validation part that are not trained on.
    pub gap: usize,
    /// Rows that a validation sample must have before its label, at least.
    pub min_history: usize,
    pub layout: String,
    pub tasks: PerColumn<String>,
    pub losses: PerColumn<String>,
    pub quantiles: Vec<f64>,
    pub focal_gamma: f64,
    pub label_smoothing: f64,
    pub label_weight: PerColumn<f64>,
    pub class_weight: ClassWeight,
    /// A column of the data.
    pub sample_weight: Option<String>,
    /// In standard deviations of the label.
    pub huber_delta: f64,
    pub model_type: String,
    pub epochs: u64,
    /// Nobody said how many: see [`crate::length`].
    pub epochs_open: bool,
    /// `None`: measured and chosen.
    pub batch_size: Option<usize>,
    pub keep_lr: bool,
    pub hidden_size: usize,
    /// The model's own number when absent.
    pub num_layers: Option<usize>,
    /// Recurrent models read each window in both directions.
    pub bidirectional: bool,
    /// Of a transformer's attention.
    pub num_heads: usize,
    /// Steps that one convolution of a TCN reads.
    pub kernel_size: usize,
    pub entity_embedding_dim: usize,
    /// Share of the training samples whose entity is hidden.
    pub entity_dropout: f64,
    pub past_labels: bool,
    /// Widths of the embeddings of single columns.
    pub column_embedding_dim: PerColumn,
    /// Values of a category that are rarer in the training part count as unknown.
    pub min_count: PerColumn,
    /// Categories with more values are hashed into this many codes.
    pub hash_size: PerColumn,
    pub sequence_length: usize,
    pub dropout: f64,
    pub learning_rate: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub momentum: f64,
    pub weight_decay: f64,
    pub optimizer: String,
    /// Decay of a running average of the weights.
    pub ema: Option<f64>,
    pub lr_schedule: String,
    /// Epochs.
    pub lr_step_size: u64,
    pub lr_gamma: f64,
    /// Evaluations.
    pub lr_patience: u64,
    /// The score that decides what is best.
    pub select: Select,
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
    pub limit_rows: Option<usize>,
    pub memory_limit: Option<u64>,
    pub threads: Option<usize>,
    pub deterministic: bool,
    pub seed: u64,
    pub output_dir: PathBuf,
    pub resume: Option<PathBuf>,
    /// A checkpoint whose weights a new training begins with.
    pub init: Option<PathBuf>,
    pub naive: bool,
    /// Those of the files when absent.
    pub channels: Option<usize>,
    /// Width and height of pictures.
    pub input_size: Option<(usize, usize)>,
    pub flip: bool,
    pub crop_padding: usize,
    /// Degrees.
    pub rotate: f64,
    /// Shares.
    pub zoom: f64,
    pub color_jitter: f64,
    /// Pixels.
    pub cutout: usize,
    pub cache: bool,
    pub verify_cache: bool,
    /// Data to make first, unless they are there.
    pub recipe: Option<Recipe>,
}

impl Settings {
    /// What is wanted of a label.
    pub fn task_of(&self, label: &str) -> &str {
        self.tasks.find(label).map_or("auto", String::as_str)
    }

    /// The loss that is named for a label, or for all.
    pub fn loss_of(&self, label: &str) -> Option<&str> {
        self.losses.find(label).map(String::as_str)
    }

    pub(crate) fn loss_words(&self) -> impl Iterator<Item = &str> {
        let columns = self.losses.columns.iter().map(|(_, word)| word);
        self.losses.all.iter().chain(columns).map(String::as_str)
    }

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
            test_from_us: read.test_from("test_from")?,
            validation_data: read.path("validation_data"),
            test_data: read.path("test_data"),
            test_ratio: read.within("test_ratio", 0.0, 0.9)?,
            policies: Policies::of(&Written {
                missing: &read.raw("missing"),
                bad_rows: &read.raw("bad_rows"),
                infinite: &read.raw("infinite"),
                column_type: &read.raw("column_type"),
                encoding: &read.raw("encoding"),
            })?,
            validation_ratio: read.within("validation_ratio", 0.0, 0.9)?,
            horizon: read.count("horizon")?,
            gap: read.count("gap")?,
            min_history: read.count("min_history")?,
            layout: read.choice("layout")?,
            tasks: read.words_per_column("task", crate::target::TASKS)?,
            losses: read.words_per_column("loss", crate::target::LOSSES)?,
            quantiles: read.quantiles("quantiles")?,
            focal_gamma: read.within("focal_gamma", 0.0, 10.0)?,
            label_smoothing: read.within("label_smoothing", 0.0, 0.99)?,
            label_weight: read.weights("label_weight")?,
            class_weight: read.class_weight("class_weight")?,
            sample_weight: read.text("sample_weight"),
            huber_delta: read.within("huber_delta", 1e-6, 1e6)?,
            model_type: read.choice("model_type")?,
            epochs: match read.raw("epochs").as_str() {
                "auto" => length::LEAST_EPOCHS,
                _ => positive("epochs")? as u64,
            },
            epochs_open: read.raw("epochs") == "auto",
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
            bidirectional: read.flag("bidirectional")?,
            num_heads: positive("num_heads")?,
            kernel_size: positive("kernel_size")?,
            entity_embedding_dim: read.count("entity_embedding_dim")?,
            entity_dropout: read.within("entity_dropout", 0.0, 0.9)?,
            past_labels: read.flag("past_labels")?,
            column_embedding_dim: read.per_column("column_embedding_dim")?,
            min_count: read.per_column("min_count")?,
            hash_size: read.per_column("hash_size")?,
            sequence_length: positive("sequence_length")?,
            dropout: read.within("dropout", 0.0, 0.99)?,
            learning_rate: read.within("learning_rate", 0.0, 1e3)?,
            betas: read.betas("betas")?,
            eps: read.within("eps", 0.0, 1.0)?,
            momentum: read.within("momentum", 0.0, 0.9999)?,
            lr_step_size: positive("lr_step_size")? as u64,
            lr_gamma: read.within("lr_gamma", 0.0, 1.0)?,
            lr_patience: read.count("lr_patience")? as u64,
            select: read.select("select")?,
            weight_decay: read.within("weight_decay", 0.0, 1e3)?,
            optimizer: read.choice("optimizer")?,
            ema: Some(read.within("ema", 0.0, 0.999_999_9)?).filter(|decay| *decay > 0.0),
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
            limit_rows: none_if_zero(read.count("limit_rows")?),
            memory_limit: read.bytes("memory_limit")?,
            threads: none_if_zero(read.count("threads")?),
            deterministic: read.flag("deterministic")?,
            seed: read.count("seed")? as u64,
            output_dir: read.path("output_dir").unwrap_or_default(),
            resume: read.path("resume"),
            init: read.path("init"),
            naive: read.choice("pipeline")? == "naive",
            channels: read
                .text("channels")
                .map(|_| read.channels("channels"))
                .transpose()?,
            input_size: read.size("input_size")?,
            flip: read.flag("flip")?,
            crop_padding: read.count("crop_padding")?,
            rotate: read.within("rotate", 0.0, 180.0)?,
            zoom: read.within("zoom", 0.0, 0.9)?,
            color_jitter: read.within("color_jitter", 0.0, 1.0)?,
            cutout: read.count("cutout")?,
            cache: read.flag("cache")?,
            verify_cache: read.flag("verify_cache")?,
            recipe: None,
        })
    }
}
