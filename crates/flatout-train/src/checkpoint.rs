//! A checkpoint is one safetensors file: parameters under PyTorch's names, the optimizer's moments, and the position as metadata. No
//! code can hide in it, and PyTorch reads it.

use crate::batch_size::Batch;
use crate::data::Preparation;
use crate::folder;
use crate::metrics::Scores;
use crate::{Settings, TrainError};
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Message, message};
use flatout_engine::{KeptTensor, Position, Role, Session};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where a run stands: all that resuming needs beside the tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Index into the phases.
    pub phase: usize,
    /// Epochs of this phase that are done.
    pub epoch: u64,
    /// Steps of the current epoch that are done.
    pub epoch_step: u64,
    /// Steps of the whole run.
    pub step: u64,
    pub updates: u64,
    pub micro_batches: u64,
    #[serde(default, with = "exact::optional")]
    pub best: Option<f64>,
    /// All scores of the evaluation with the best one.
    #[serde(default)]
    pub best_scores: Option<Scores>,
    /// How often a plateau has reduced the learning rate, and evaluations since then without a better score.
    #[serde(default)]
    pub reductions: u64,
    #[serde(default)]
    pub on_plateau: u64,
    /// Evaluations since the best one.
    pub without_gain: u64,
    /// The loss of the epoch so far.
    #[serde(default)]
    pub loss: LossSum,
    /// The same at the last logged step of this epoch.
    #[serde(default)]
    pub logged_loss: LossSum,
    /// Of the current phase.
    #[serde(default)]
    pub batch: Option<Batch>,
}

/// A training loss summed over samples, as the session computes it: not yet scaled to the target's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossSum {
    #[serde(with = "exact")]
    pub sum: f64,
    pub samples: u64,
}

impl LossSum {
    pub fn mean(self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / self.samples as f64)
    }

    /// The mean over the samples added since `earlier`.
    pub fn mean_since(self, earlier: Self) -> Option<f64> {
        let added = Self {
            sum: self.sum - earlier.sum,
            samples: self.samples.saturating_sub(earlier.samples),
        };
        added.mean()
    }
}

/// Numbers that come back to the last bit. serde_json reads a number that it wrote up to one unit in the last place off, so these
/// are written as text, which Rust's own reader reads exactly. Checkpoints of 0.1.0 have plain numbers.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(f64),
    }

    impl Written {
        fn value<E: serde::de::Error>(self) -> Result<f64, E> {
            match self {
                Self::Text(text) => text.parse().map_err(E::custom),
                Self::Number(number) => Ok(number),
            }
        }
    }

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Written::deserialize(deserializer)?.value()
    }

    pub mod optional {
        use super::{Deserialize, Deserializer, Serializer, Written};

        pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
            let written = Option::<Written>::deserialize(deserializer)?;
            written.map(Written::value).transpose()
        }
    }
}

/// Parameters, state and position of a session in memory, on their way to another session of the same model.
pub struct Snapshot {
    tensors: Vec<(String, Vec<f32>)>,
    position: Position,
}

impl Snapshot {
    pub fn take(session: &mut dyn Session, position: Position) -> Result<Self, TrainError> {
        let mut tensors = Vec::new();
        for (name, shape) in kept(session) {
            let mut values = vec![0f32; shape.iter().product()];
            session.read(&name, &mut values)?;
            tensors.push((name, values));
        }
        Ok(Self { tensors, position })
    }

    pub fn put(&self, session: &mut dyn Session) -> Result<(), TrainError> {
        for (name, values) in &self.tensors {
            session.write(name, values)?;
        }
        session.set_position(self.position);
        Ok(())
    }
}

/// Names and shapes of everything that is kept from step to step.
fn kept(session: &dyn Session) -> Vec<(String, Vec<usize>)> {
    let buffers = session.plan().buffers().iter();
    let kept = buffers.filter(|buffer| matches!(buffer.role, Role::Parameter | Role::State));
    kept.map(|buffer| (buffer.name.clone(), buffer.shape.clone()))
        .collect()
}

/// A running average in a session. In the file it has the name of its parameter, so that whoever reads the file has the averages; the
/// parameter that training goes on from has a name of its own.
const AVERAGE: &str = "optimizer.average.";
const CURRENT: &str = "optimizer.current.";

/// Settings of a session that only computes predictions: its parameters are the averages, where there are any.
pub fn without_averages(settings: &Settings) -> Settings {
    Settings {
        ema: None,
        ..settings.clone()
    }
}

/// Where a file has what a session calls `name`. One that was trained without averages has the parameter alone.
fn name_in_file(name: &str, session: &dyn Session, tensors: &SafeTensors) -> String {
    if let Some(parameter) = name.strip_prefix(AVERAGE) {
        return parameter.to_owned();
    }
    let current = format!("{CURRENT}{name}");
    let averaged = session.plan().find(&format!("{AVERAGE}{name}")).is_ok();
    match averaged && tensors.tensor(&current).is_ok() {
        true => current,
        false => name.to_owned(),
    }
}

/// The key of the metadata that holds everything of ours.
const KEY: &str = "flatout";
/// A tensor of bytes: how raw values became the model's, as JSON.
const PREPARATION: &str = "flatout.preparation";

#[derive(Serialize, Deserialize)]
struct Metadata {
    progress: Progress,
    /// The resolved configuration.
    configuration: String,
}

/// What is written beside the tensors.
pub struct Extra<'a> {
    pub progress: &'a Progress,
    pub configuration: &'a str,
    pub preparation: &'a Preparation,
}

/// The state of a session as it is now, waited for.
pub fn save(path: &Path, session: &mut dyn Session, extra: &Extra) -> Result<(), TrainError> {
    write(path, &session.snapshot()?.wait()?, extra)
}

/// Writes tensors that have left their session.
pub fn write(path: &Path, tensors: &[KeptTensor], extra: &Extra) -> Result<(), TrainError> {
    let named: HashSet<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| Tensor::of(tensor, &named)).collect();
    // Categories may have millions of values: too many for the file's header.
    let preparation = serde_json::to_vec(extra.preparation).unwrap_or_default();
    let own = Tensor {
        name: PREPARATION.to_owned(),
        shape: vec![preparation.len()],
        bytes: preparation,
    };
    let typed = tensors.iter().map(|tensor| (Dtype::F32, tensor));
    let views = typed.chain([(Dtype::U8, &own)]).map(|(kind, tensor)| {
        let view = TensorView::new(kind, tensor.shape.clone(), &tensor.bytes);
        view.map(|view| (tensor.name.as_str(), view))
            .map_err(|error| broken(path, &error.to_string()))
    });
    let views = views.collect::<Result<Vec<_>, TrainError>>()?;
    let metadata = Metadata {
        progress: extra.progress.clone(),
        configuration: extra.configuration.to_owned(),
    };
    let text = serde_json::to_string(&metadata).unwrap_or_default();
    let metadata = HashMap::from([(KEY.to_owned(), text), ("format".to_owned(), "pt".to_owned())]);
    let bytes =
        safetensors::serialize(views, Some(metadata)).map_err(|error| broken(path, &error.to_string()))?;
    Ok(write_atomically(path, &bytes)?)
}

/// As the file has it.
struct Tensor {
    name: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    /// `named`: everything that is written.
    fn of(tensor: &KeptTensor, named: &HashSet<&str>) -> Self {
        let averaged = named.contains(format!("{AVERAGE}{}", tensor.name).as_str());
        Self {
            name: match tensor.name.strip_prefix(AVERAGE) {
                Some(parameter) => parameter.to_owned(),
                None if averaged => format!("{CURRENT}{}", tensor.name),
                None => tensor.name.clone(),
            },
            shape: tensor.shape.clone(),
            bytes: tensor
                .values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        }
    }
}

/// The file that a person means: a checkpoint itself, or the last one of an output folder.
pub fn find(path: &Path) -> PathBuf {
    if path.is_dir() {
        return folder::find(path, "last.safetensors");
    }
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(parent), Some(name)) if !path.exists() => folder::find(parent, name),
        _ => path.to_owned(),
    }
}

/// The file that a person means who wants the best model: a checkpoint itself, or the best one of an output folder.
pub fn find_best(path: &Path) -> PathBuf {
    let best = folder::find(path, "best.safetensors");
    if best.is_file() { best } else { find(path) }
}

/// A checkpoint's metadata alone.
pub struct Described {
    pub progress: Progress,
    pub configuration: String,
}

pub fn describe(path: &Path) -> Result<Described, TrainError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::reading(path, source))?;
    described(path, &bytes)
}

fn described(path: &Path, bytes: &[u8]) -> Result<Described, TrainError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| broken(path, &error.to_string()))?;
    let ours = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let foreign = || {
        refuse(
            path,
            message!(en: "it is not a flatout checkpoint", zh: "它不是 flatout 的检查点"),
        )
    };
    let metadata: Metadata =
        serde_json::from_str(ours.ok_or_else(foreign)?).map_err(|error| broken(path, &error.to_string()))?;
    let Metadata {
        progress,
        configuration,
    } = metadata;
    Ok(Described {
        progress,
        configuration,
    })
}

/// How the data of a checkpoint were prepared.
pub fn preparation(path: &Path) -> Result<Preparation, TrainError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::reading(path, source))?;
    described(path, &bytes)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| broken(path, &error.to_string()))?;
    let own = tensors
        .tensor(PREPARATION)
        .map_err(|error| broken(path, &error.to_string()))?;
    serde_json::from_slice(own.data()).map_err(|error| broken(path, &error.to_string()))
}

/// Puts those parameters of a checkpoint into a session that have the same name and shape there. Gives the names of those it had no
/// values for.
pub fn load_matching(path: &Path, session: &mut dyn Session) -> Result<Vec<String>, TrainError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::reading(path, source))?;
    described(path, &bytes)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| broken(path, &error.to_string()))?;
    let (mut without, mut taken) = (Vec::new(), 0);
    for (name, shape) in kept(session) {
        // The moments of another training are not those of this one.
        if name.starts_with("optimizer.") {
            continue;
        }
        match tensors.tensor(&name) {
            Ok(tensor) if tensor.shape() == shape && tensor.dtype() == Dtype::F32 => {
                session.write(&name, &reals(tensor.data()))?;
                taken += 1;
            }
            _ => without.push(name),
        }
    }
    if taken == 0 {
        return Err(refuse(
            path,
            message!(en: "none of its tensors fits this model", zh: "其中没有一个张量适合此模型"),
        ));
    }
    Ok(without)
}

fn reals(bytes: &[u8]) -> Vec<f32> {
    let four = bytes.chunks_exact(4);
    four.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

/// Puts a checkpoint's tensors into a session of the same model.
pub fn load(path: &Path, session: &mut dyn Session) -> Result<Progress, TrainError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::reading(path, source))?;
    let described = described(path, &bytes)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| broken(path, &error.to_string()))?;
    for (name, shape) in kept(session) {
        let Ok(tensor) = tensors.tensor(&name_in_file(&name, session, &tensors)) else {
            return Err(refuse(
                path,
                message!(en: "it belongs to another model: it has no `{name}`", zh: "它属于另一个模型：没有 `{name}`"),
            ));
        };
        if tensor.shape() != shape || tensor.dtype() != Dtype::F32 {
            let found = tensor.shape();
            return Err(refuse(
                path,
                message!(en: "it belongs to another model: `{name}` has shape {found:?}, not {shape:?}", zh: "它属于另一个模型：`{name}` 的形状是 {found:?}，而不是 {shape:?}"),
            ));
        }
        session.write(&name, &reals(tensor.data()))?;
    }
    let progress = described.progress;
    session.set_position(Position {
        updates: progress.updates,
        micro_batches: progress.micro_batches,
    });
    Ok(progress)
}

fn refuse(path: &Path, reason: Message) -> TrainError {
    TrainError::Checkpoint {
        path: path.to_owned(),
        reason,
    }
}

fn broken(path: &Path, reason: &str) -> TrainError {
    refuse(
        path,
        message!(en: "it is damaged or not a safetensors file ({reason})", zh: "文件损坏，或不是 safetensors 文件（{reason}）"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_to_the_last_bit() {
        let mut bits = 0x3ff0_0000_0000_0001_u64;
        for _ in 0..2000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) & 0x43ff_ffff_ffff_ffff;
            let progress = Progress {
                best: Some(f64::from_bits(bits)),
                loss: LossSum {
                    sum: f64::from_bits(bits ^ 0xff),
                    samples: bits,
                },
                ..Progress::default()
            };
            let text = serde_json::to_string(&progress).unwrap();
            assert_eq!(
                serde_json::from_str::<Progress>(&text).unwrap(),
                progress,
                "{text}"
            );
        }
    }

    #[test]
    fn checkpoints_of_0_1_0_are_read() {
        let text = r#"{"phase":0,"epoch":2,"epoch_step":5,"step":25,"updates":25,"micro_batches":25,
            "best":0.5,"without_gain":0,"epoch_loss":12.5,"epoch_samples":40}"#;
        let progress: Progress = serde_json::from_str(text).unwrap();
        assert_eq!((progress.best, progress.loss), (Some(0.5), LossSum::default()));
    }
}
