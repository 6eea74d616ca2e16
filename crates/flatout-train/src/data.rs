//! Files to tables and samples: what stays in one place (tables), what names a sample in them (indices), and everything that
//! turns a raw value into what the model saw, so that a checkpoint can be used on other files.

mod codes;
mod kind;
mod overlap;
pub mod panel;
pub mod pictures;
pub mod rows;
mod weights;

pub use codes::Codes;
pub use kind::Kind;

use crate::augment::{Augmenter, Changes};
use crate::metrics::Label;
use crate::target::{Labels, Target, Task};
use crate::{Settings, TrainError};
use flatout_core::plural::counted;
use flatout_core::{Explain, Message, message};
use flatout_data::formats::npy_table;
use flatout_data::generate::Recipe;
use flatout_data::table::Skipped;
use flatout_data::{Cache, CacheUse, DataError, SplitRule, Standardiser};
use flatout_engine::Table;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// For `--layout`.
pub const LAYOUTS: &[&str] = &["auto", "panel", "rows", "images"];

/// What a model is built for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shape {
    /// Windows over the rows of entities.
    Sequence {
        features: usize,
        entities: usize,
        /// Whether there is one more embedding, for entities that are not known.
        #[serde(default)]
        unknown: bool,
        /// Codes of each categorical column.
        #[serde(default)]
        categories: Vec<usize>,
    },
    /// Rows, with categories of so many codes each.
    Rows { features: usize, categories: Vec<usize> },
    /// Bytes `[height, width, channels]`; the model sees `byte · scale + shift`.
    Pictures {
        height: usize,
        width: usize,
        channels: usize,
        scale: f64,
        shift: f64,
    },
}

/// How raw values became the model's. Kept in every checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    pub shape: Shape,
    pub label: String,
    pub target: Target,
    pub features: Vec<String>,
    /// Of each feature, fitted on the training part; empty for pictures.
    pub mean: Vec<f32>,
    pub std: Vec<f32>,
    pub categories: Vec<Codes>,
    pub entities: Vec<String>,
}

impl Preparation {
    pub fn standardiser(&self) -> Standardiser {
        Standardiser {
            mean: self.mean.clone(),
            std: self.std.clone(),
        }
    }
}

/// A data set ready to train on. Copies share the tables.
#[derive(Clone)]
pub struct TrainingData {
    pub preparation: Preparation,
    /// Name in the plan, contents.
    pub tables: Vec<(String, Table)>,
    pub train: Arc<[u32]>,
    pub validation: Arc<[u32]>,
    /// Scored once, at the end.
    pub test: Arc<[u32]>,
    /// What metrics compare with, of every row.
    labels: Labels,
    entity_of_row: Arc<Vec<i32>>,
    /// Of each entity, whether any sample of it is trained on; those that are not are unknown.
    trained: Arc<[bool]>,
    /// From a sample's number to the row of its label, and to the last row of its window.
    label_offset: u32,
    last_offset: u32,
    pub bytes: usize,
    /// What a person should know about the data.
    pub notes: Vec<Message>,
    /// Of sequences: what other windows are cut from.
    panel: Option<Arc<panel::Loaded>>,
    /// Of images that the host changes at random.
    augmenter: Option<Arc<Augmenter>>,
}

impl TrainingData {
    pub fn load(settings: &Settings) -> Result<Self, TrainError> {
        let path = settings
            .data
            .as_deref()
            .ok_or(TrainError::Missing { setting: "data" })?;
        let made = settings
            .recipe
            .as_ref()
            .map(|recipe| make(path, recipe))
            .transpose()?;
        let kind = match settings.layout.as_str() {
            "panel" => Kind::Panel,
            "rows" => Kind::Rows,
            "images" => Kind::Pictures,
            _ if settings.entity.is_some() => Kind::Panel,
            _ => Kind::of(path, &settings.model_type)?,
        };
        let separate = [
            ("validation_data", &settings.validation_data),
            ("test_data", &settings.test_data),
        ];
        if let (Kind::Panel, Some((setting, _))) = (kind, separate.iter().find(|(_, path)| path.is_some())) {
            return Err(TrainError::DoesNotApply {
                setting: (*setting).to_owned(),
                reason: message!(
                    en: "sequences are split at a date; use --validation-from or --test-from",
                    zh: "序列按日期划分；请用 --validation-from 或 --test-from"
                ),
            });
        }
        contradictory(settings)?;
        let began = std::time::Instant::now();
        log::info!("reading {} as {kind:?}", path.display());
        let mut data = match kind {
            Kind::Panel => panel::load(path, settings),
            Kind::Rows => rows::load(path, settings),
            Kind::Pictures => pictures::load(path, settings),
        }?;
        if let (true, Some(_)) = (data.train.is_empty(), settings.validation_from_us) {
            return Err(TrainError::Data(DataError::Setting(message!(
                en: "validation_from is before all data: no samples are left for training",
                zh: "validation_from 早于全部数据：没有可用于训练的样本"
            ))));
        }
        log::info!(
            "read in {:.3} s: {} samples to train on, {} to validate on, {} bytes; label {}, features {:?}",
            began.elapsed().as_secs_f64(),
            data.train.len(),
            data.validation.len(),
            data.bytes,
            data.preparation.label,
            data.preparation.features
        );
        data.notes.splice(0..0, made);
        if Changes::of(settings).is_any() && !matches!(data.shape(), Shape::Pictures { .. }) {
            data.notes.push(message!(en: "only images can be augmented (flip, crop_padding, rotate, zoom, color_jitter, cutout), and this data contains none", zh: "只有图像可以随机变换（flip、crop_padding、rotate、zoom、color_jitter、cutout）；这些数据不是图像"));
        }
        if let (Some(_), Shape::Sequence { features, .. } | Shape::Rows { features, .. }) =
            (settings.input_size, data.shape())
        {
            data.notes.push(message!(en: "input_size ignored: the data has {features} features", zh: "input_size：由数据本身决定：{features} 个特征"));
        }
        Ok(data)
    }

    /// Whether two trainings read the same values, whatever windows they cut from them.
    pub fn same_files(one: &Settings, other: &Settings) -> bool {
        let source = |settings: &Settings| {
            (
                settings.data.clone(),
                settings.label.clone(),
                (settings.limit, settings.limit_rows),
                settings.validation_ratio.to_bits(),
                settings.validation_from_us,
                (settings.test_ratio.to_bits(), settings.test_from_us),
                (settings.validation_data.clone(), settings.test_data.clone()),
            )
        };
        let columns = |settings: &Settings| {
            (
                settings.entity.clone(),
                settings.time.clone(),
                settings.policies.clone(),
                settings.layout.clone(),
            )
        };
        let coded = |settings: &Settings| {
            (
                settings.min_count.clone(),
                settings.hash_size.clone(),
                settings.past_labels,
                settings.entity_dropout > 0.0,
            )
        };
        let read_as = |settings: &Settings| (settings.tasks.clone(), settings.input_size, settings.channels);
        let learned = |settings: &Settings| {
            (
                settings.losses.clone(),
                (settings.quantiles.clone(), settings.label_weight.clone()),
                (settings.class_weight.clone(), settings.sample_weight.clone()),
                [
                    settings.huber_delta,
                    settings.focal_gamma,
                    settings.label_smoothing,
                ],
            )
        };
        let changed = Changes::of;
        source(one) == source(other)
            && columns(one) == columns(other)
            && coded(one) == coded(other)
            && read_as(one) == read_as(other)
            && learned(one) == learned(other)
            && changed(one) == changed(other)
    }

    /// The same data for another training: windows of its length, random changes of its seed. Nothing is read.
    pub fn for_training(&self, settings: &Settings) -> Result<Self, TrainError> {
        let mut data = match &self.panel {
            Some(panel) => panel.windows(settings)?,
            None => self.clone(),
        };
        if let Some(augmenter) = &mut data.augmenter
            && augmenter.seed != settings.seed
        {
            *augmenter = Arc::new(Augmenter {
                seed: settings.seed,
                ..(**augmenter).clone()
            });
        }
        Ok(data)
    }

    /// The tables of an epoch that differ from [`Self::tables`]: images that are changed at random.
    pub fn changed_tables(&self, epoch: u64) -> Vec<(String, Table)> {
        let changed = self.augmenter.as_ref();
        changed
            .map(|augmenter| augmenter.tables(epoch, 1))
            .unwrap_or_default()
    }

    pub(crate) fn augmenter(&self) -> Option<Arc<Augmenter>> {
        self.augmenter.clone()
    }

    pub fn shape(&self) -> &Shape {
        &self.preparation.shape
    }

    pub fn target(&self) -> &Target {
        &self.preparation.target
    }

    pub fn is_sequence(&self) -> bool {
        matches!(self.shape(), Shape::Sequence { .. })
    }

    /// The row of a sample's label.
    pub fn label_row(&self, sample: u32) -> u32 {
        sample + self.label_offset
    }

    pub fn label(&self, sample: u32) -> Label<'_> {
        let row = self.label_row(sample) as usize;
        match &self.labels {
            Labels::Real { values, columns } => {
                Label::Real(values.get(row * columns..(row + 1) * columns).unwrap_or_default())
            }
            Labels::Class(classes) => Label::Class(classes.get(row).copied().unwrap_or(-1)),
        }
    }

    /// When the last row of a sample's window was: the day on which the prediction is made.
    pub fn time_us(&self, sample: u32) -> Option<i64> {
        self.panel.as_ref()?.time_us(self.last_row(sample))
    }

    pub fn entity(&self, sample: u32) -> i32 {
        let entity = self.entity_of_row.get(sample as usize).copied().unwrap_or(0);
        match self.unknown_entity() {
            Some(unknown) if !self.trained.get(entity as usize).copied().unwrap_or(true) => unknown,
            _ => entity,
        }
    }

    /// The number of the embedding for entities that are not known, where there is one.
    pub fn unknown_entity(&self) -> Option<i32> {
        match self.shape() {
            Shape::Sequence {
                entities,
                unknown: true,
                ..
            } => i32::try_from(*entities).ok(),
            _ => None,
        }
    }

    /// The last row of a sample's window.
    pub fn last_row(&self, sample: u32) -> u32 {
        sample + self.last_offset
    }
}

/// Labels as the plan sees them.
pub(crate) fn label_table(target: &Target, labels: &Labels, weights: Option<&[f32]>) -> Table {
    match labels {
        _ if target.has_terms() => Table::I32(Arc::new(weights::words(target, labels, weights))),
        Labels::Class(classes) => Table::I32(classes.clone()),
        Labels::Real { values, columns } if target.task == Task::Regression => {
            let inverse = 1.0 / target.scale;
            let columns = (*columns).max(1);
            let scaled = values.iter().enumerate().map(|(place, value)| {
                let mean = target.mean.get(place % columns).copied().unwrap_or(0.0);
                (value - mean) * inverse
            });
            Table::F32(Arc::new(scaled.collect::<Vec<f32>>()))
        }
        Labels::Real { values, .. } => Table::F32(values.clone()),
    }
}

/// A part of the data that is given both as a date and as a file.
fn contradictory(settings: &Settings) -> Result<(), TrainError> {
    let both = |date: &str, from_us: Option<i64>, file: &Option<PathBuf>, of: &str| match (from_us, file) {
        (Some(from_us), Some(_)) => Err(TrainError::Value {
            setting: date.to_owned(),
            value: flatout_data::time::format_us(from_us),
            expected: message!(en: "nothing together with {of}, which is that part already", zh: "不与 {of} 同时设定，后者已是这一部分"),
        }),
        _ => Ok(()),
    };
    both(
        "validation_from",
        settings.validation_from_us,
        &settings.validation_data,
        "validation_data",
    )?;
    both(
        "test_from",
        settings.test_from_us,
        &settings.test_data,
        "test_data",
    )
}

/// The newest samples, or some drawn at random, are kept to validate on; none where that is another file.
fn split_rule(settings: &Settings) -> SplitRule {
    if let Some(validation_from_us) = settings.validation_from_us {
        return SplitRule::Time {
            validation_from_us,
            test_from_us: settings.test_from_us,
        };
    }
    if settings.validation_data.is_some() || settings.test_data.is_some() {
        return without(
            settings.validation_data.is_some(),
            settings.test_data.is_some(),
            settings,
        );
    }
    let validation = settings.validation_ratio;
    SplitRule::Ratio {
        train: 1.0 - validation - settings.test_ratio,
        validation,
        shuffle_seed: Some(0),
    }
}

/// A split by shares, without those of parts that are in other files.
fn without(validation: bool, test: bool, settings: &Settings) -> SplitRule {
    let share = |elsewhere: bool, share: f64| if elsewhere { 0.0 } else { share };
    let validation = share(validation, settings.validation_ratio);
    SplitRule::Ratio {
        train: 1.0 - validation - share(test, settings.test_ratio),
        validation,
        shuffle_seed: Some(0),
    }
}

/// Makes the recipe's data unless they are there, and says what the best score is.
fn make(path: &Path, recipe: &Recipe) -> Result<Message, TrainError> {
    let generated = recipe.ensure(path, None)?;
    let lines = generated.best.lines();
    let best = lines.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("validation.")?;
        Some(format!("{name} {value:.4}"))
    });
    let (path, best) = (path.display(), best.collect::<Vec<_>>().join(", "));
    Ok(message!(
        en: "{path} contains generated data; the best score any model can reach on its validation split: \
        {best}",
        zh: "{path} 中是生成的数据；任何模型在其验证集上所能达到的最佳得分：{best}"
    ))
}

/// The column that the settings name, else the one that generated data name themselves, else the `labels.npy` beside arrays.
fn label_of(path: &Path, settings: &Settings) -> Result<Option<String>, TrainError> {
    if settings.label.is_some() {
        return Ok(settings.label.clone());
    }
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let recipe = folder.map(flatout_data::generate::read_recipe).transpose()?;
    let beside = || npy_table::has_labels(path).then(|| npy_table::LABEL.to_owned());
    Ok(recipe.flatten().map(|generated| generated.label).or_else(beside))
}

/// Says which rows are not learnt from.
pub(crate) fn left_out(skipped: &Skipped, dropped: usize) -> Vec<Message> {
    let mut notes = Vec::new();
    let count = skipped.count;
    if let Some(first) = skipped.examples.first() {
        let first = DataError::BadRow(first.clone()).message();
        notes.push(Message {
            en: counted(format!(
                "skipped {count} rows that cannot be read; the first: {}",
                first.en
            )),
            zh: format!("{count} 行无法读取，已跳过；第一处：{}", first.zh),
        });
    } else if count > 0 {
        notes
            .push(message!(en: "skipped {count} rows that cannot be read", zh: "{count} 行无法读取，已跳过"));
    }
    if dropped > 0 {
        notes.push(
            message!(en: "dropped {dropped} rows with missing values", zh: "{dropped} 行因缺失值被丢弃"),
        );
    }
    notes
}

/// The prepared cache, unless it is switched off.
fn cached<T>(
    settings: &Settings,
    notes: &mut Vec<Message>,
    load: impl FnOnce() -> flatout_data::Result<T>,
    cached: impl FnOnce(&Cache) -> flatout_data::Result<(T, CacheUse)>,
) -> Result<T, TrainError> {
    if !settings.cache {
        return Ok(load()?);
    }
    let mut cache = Cache::new(Cache::default_folder());
    cache.verify_sources = settings.verify_cache;
    let (value, used) = cached(&cache)?;
    log::debug!("prepared data: {used:?}");
    if let CacheUse::NotStored(reason) = used {
        notes.push(message!(en: "failed to save the prepared data for the next run: {reason}", zh: "预处理后的数据未能保存供下次使用：{reason}"));
    }
    Ok(value)
}
