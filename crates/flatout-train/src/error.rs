//! What can go wrong in training, in words with a next step.

use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message};
use flatout_data::DataError;
use flatout_engine::EngineError;
use std::path::PathBuf;

#[derive(Debug)]
pub enum TrainError {
    /// A setting's value is not of its kind, or out of range.
    Value {
        setting: String,
        value: String,
        expected: Message,
    },
    /// A setting that has no meaning for this data or model.
    DoesNotApply {
        setting: String,
        reason: Message,
    },
    /// A key that no setting has.
    UnknownKey {
        key: String,
        place: String,
        nearest: Option<String>,
    },
    /// Everything that is wrong in a configuration file.
    Mistakes {
        path: PathBuf,
        list: Vec<Message>,
    },
    /// The configuration file is no YAML.
    Syntax {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    /// A setting that must be given.
    Missing {
        setting: &'static str,
    },
    /// A checkpoint that cannot be used here.
    Checkpoint {
        path: PathBuf,
        reason: Message,
    },
    /// The loss is no number any more.
    NotFinite {
        epoch: u64,
        /// The first bad step, or the one at which it was seen.
        step: u64,
        /// Where the device does not tell the first: the last good one.
        after: Option<u64>,
        kept: Option<PathBuf>,
    },
    /// Data that a checkpoint cannot be used on.
    OtherData {
        path: PathBuf,
        reason: Message,
    },
    /// A label that is the same everywhere.
    OneClass {
        class: String,
    },
    /// A grid without anything to combine.
    NoLists {
        place: String,
    },
    /// Not even single samples fit into memory.
    DoesNotFit {
        wanted_bytes: u64,
        /// Flags of a model that fits.
        smaller: Option<String>,
    },
    /// Another training works in the output folder.
    FolderInUse {
        folder: PathBuf,
        pid: u32,
        host: String,
        command: String,
    },
    /// A training that continues another one would train something else.
    ResumesOther {
        checkpoint: PathBuf,
        /// What differs: the setting, its value then, its value now.
        differences: Vec<(String, String, String)>,
    },
    /// A model that cannot be written for other programs.
    Export {
        reason: Message,
    },
    Data(DataError),
    Engine(EngineError),
    File(FileError),
}

impl Explain for TrainError {
    fn message(&self) -> Message {
        match self {
            Self::Value {
                setting,
                value,
                expected,
            } => Message {
                en: format!("`{setting}` is `{value}`; expected {}", expected.en),
                zh: format!("`{setting}` 的值为 `{value}`；应为{}", expected.zh),
            },
            Self::DoesNotApply { setting, reason } => Message {
                en: format!("`{setting}` does not apply here: {}", reason.en),
                zh: format!("`{setting}` 在这里不适用：{}", reason.zh),
            },
            Self::UnknownKey { key, place, .. } => {
                message!(en: "{place}: unknown setting `{key}`", zh: "{place}：没有名为 `{key}` 的设置")
            }
            Self::Mistakes { list, .. } if list.len() == 1 => list[0].clone(),
            Self::Mistakes { path, list } => {
                let (path, count) = (path.display(), list.len());
                let mut words =
                    message!(en: "{path} has {count} mistakes:", zh: "{path} 有 {count} 处错误：");
                for one in list {
                    words.en += &format!("\n  {}", one.en);
                    words.zh += &format!("\n  {}", one.zh);
                }
                words
            }
            Self::Syntax { path, line, reason } => {
                let path = path.display();
                message!(en: "{path}:{line}: {reason}", zh: "{path}:{line}：格式错误：{reason}")
            }
            Self::Missing { setting } => {
                message!(en: "`--{setting}` is missing", zh: "缺少 `--{setting}`")
            }
            Self::Checkpoint { path, reason } => {
                let path = path.display();
                Message {
                    en: format!("`{path}` cannot be used: {}", reason.en),
                    zh: format!("无法使用 `{path}`：{}", reason.zh),
                }
            }
            Self::NotFinite {
                epoch,
                step,
                after: Some(good),
                ..
            } => {
                message!(en: "the loss became NaN or infinite between steps {good} and {step} (epoch \
                {epoch}); training stopped", zh: "第 {good} 步到第 {step} 步之间（第 {epoch} 轮）损失变为无效数值；训练已停止")
            }
            Self::NotFinite { epoch, step, .. } => {
                message!(en: "the loss has been NaN or infinite since step {step} (epoch {epoch}); training \
                stopped", zh: "从第 {step} 步（第 {epoch} 轮）起损失不是有效数值；训练已停止")
            }
            Self::OtherData { path, reason } => {
                let path = path.display();
                Message {
                    en: format!("the model cannot be used on `{path}`: {}", reason.en),
                    zh: format!("模型无法用于 `{path}`：{}", reason.zh),
                }
            }
            Self::Export { reason } => Message {
                en: format!("the model cannot be exported: {}", reason.en),
                zh: format!("模型无法导出：{}", reason.zh),
            },
            Self::OneClass { class } => {
                message!(en: "the label has only one class, `{class}`: there is nothing to classify", zh: "标签只有一个类别 `{class}`：没有可区分的内容")
            }
            Self::NoLists { place } => {
                message!(en: "{place}: no setting has more than one value to try", zh: "{place}：没有任何设置给出多个值")
            }
            Self::DoesNotFit { wanted_bytes, .. } => {
                let wanted = flatout_core::units::bytes(*wanted_bytes as f64);
                message!(en: "the model does not fit in memory, even with one sample at a time ({wanted} \
                needed)", zh: "模型放不进内存，即使一次只处理一个样本（需要 {wanted}）")
            }
            Self::FolderInUse {
                folder,
                pid,
                host,
                command,
            } => {
                let folder = folder.display();
                message!(en: "`{folder}` is in use by another training: process {pid} on {host}, `{command}`", zh: "`{folder}` 正被另一次训练使用：{host} 上的进程 {pid}，`{command}`")
            }
            Self::ResumesOther {
                checkpoint,
                differences,
            } => {
                let checkpoint = checkpoint.display();
                let list = |word: &str| {
                    let one = |(name, then, now): &(String, String, String)| {
                        format!("{name} `{then}`{word}`{now}`")
                    };
                    differences.iter().map(one).collect::<Vec<_>>().join(", ")
                };
                let (en, zh) = (list(", not "), list("，而不是 "));
                Message {
                    en: format!("`{checkpoint}` was trained with other settings: {en}"),
                    zh: format!("`{checkpoint}` 是用其他设置训练的：{zh}"),
                }
            }
            Self::Data(error) => error.message(),
            Self::Engine(error) => error.message(),
            Self::File(error) => error.message(),
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::UnknownKey {
                nearest: Some(nearest),
                ..
            } => Some(message!(en: "did you mean `{nearest}`?", zh: "是否想写 `{nearest}`？")),
            Self::UnknownKey { .. } => Some(
                message!(en: "list all settings: flatout train --help", zh: "查看全部设置：flatout train --help"),
            ),
            Self::Missing { setting: "label" } => Some(
                message!(en: "name the column to predict; `flatout data inspect PATH` lists the columns", zh: "请指定要预测的列；`flatout data inspect PATH` 可列出所有列"),
            ),
            Self::Missing { .. } => Some(
                message!(en: "generate data to try: flatout generate stocks --out data/stocks", zh: "可先生成试用数据：flatout generate stocks --out data/stocks"),
            ),
            Self::Checkpoint { .. } => Some(message!(
                en: "an output folder contains best.safetensors and last.safetensors; use the model settings \
                it was trained with",
                zh: "输出文件夹中有 best.safetensors 和 last.safetensors；模型设置必须与训练时相同"
            )),
            Self::OneClass { .. } => Some(message!(
                en: "at least two classes are needed: choose another column with `--label COLUMN`; images \
                need one folder per class",
                zh: "至少需要两个类别：用 `--label 列名` 指定另一列；图片应按类别放在各自的文件夹中"
            )),
            Self::OtherData { path, .. } => {
                let path = path.display();
                Some(
                    message!(en: "check what the data contains: flatout data inspect {path}", zh: "查看其中的数据：flatout data inspect {path}"),
                )
            }
            Self::NotFinite { kept: Some(path), .. } => {
                let path = path.display();
                Some(
                    message!(en: "lower --learning-rate and resume from the last good checkpoint: --resume \
                    {path}", zh: "降低 --learning-rate，并从最后一个有效检查点继续：--resume {path}"),
                )
            }
            Self::NotFinite { .. } => Some(
                message!(en: "lower --learning-rate, or set --clip-norm 1", zh: "降低 --learning-rate，或设置 --clip-norm 1"),
            ),
            Self::NoLists { .. } => Some(
                message!(en: "list the values to try, such as hidden_size: [128, 256]", zh: "用列表写出要尝试的值，例如 hidden_size: [128, 256]"),
            ),
            Self::Value { value, .. } if value.contains([',', '|']) => Some(
                message!(en: "to try every value of a list: flatout grid CONFIG", zh: "要逐个尝试列表中的值：flatout grid CONFIG"),
            ),
            Self::DoesNotFit {
                smaller: Some(flags), ..
            } => Some(message!(en: "this model fits: {flags}", zh: "这个模型放得下：{flags}")),
            Self::DoesNotFit { .. } => Some(
                message!(en: "no smaller model fits either: free memory, or use less data with --limit", zh: "更小的模型也放不下：请释放内存，或用 --limit 减少数据"),
            ),
            Self::FolderInUse { .. } => Some(message!(
                en: "wait until it ends, or train into another folder with --output-dir",
                zh: "请等它结束，或用 --output-dir 指定另一个文件夹"
            )),
            Self::ResumesOther { checkpoint, .. } => {
                let checkpoint = checkpoint.display();
                Some(message!(
                    en: "--resume continues the same training; to start a new one from these weights: --init {checkpoint}",
                    zh: "--resume 只能继续同一次训练；要以这些权重开始新的训练：--init {checkpoint}"
                ))
            }
            Self::Data(error) => error.hint(),
            Self::Engine(error) => error.hint(),
            Self::File(error) => error.hint(),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Data(error) => error.cause(),
            Self::File(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(TrainError);

impl From<DataError> for TrainError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<EngineError> for TrainError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<FileError> for TrainError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
