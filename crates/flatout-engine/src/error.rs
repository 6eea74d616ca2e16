//! What can go wrong between describing a model and running it. Nothing here is about files: the engine opens none.

use crate::cuda::CudaError;
use flatout_core::{Explain, Message, explained, message};

/// A shape as people write it.
fn shape(dimensions: &[usize]) -> String {
    let parts: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
    format!("[{}]", parts.join(", "))
}

#[derive(Debug, Clone, PartialEq)]
pub enum EngineError {
    /// An operation was given tensors that do not fit it.
    Shape {
        operation: &'static str,
        expected: String,
        found: Vec<usize>,
    },
    /// A size, rate or count outside what the operation can do.
    Setting {
        operation: &'static str,
        setting: &'static str,
        value: f64,
        allowed: &'static str,
    },
    /// Two buffers of one name.
    DuplicateName { name: String },
    /// No buffer of that name, with the nearest one there is.
    UnknownName { name: String, nearest: Option<String> },
    /// A buffer was filled with a slice of the wrong length.
    Length {
        name: String,
        expected: usize,
        found: usize,
    },
    /// A buffer was filled with values of another type.
    ValueType {
        name: String,
        expected: &'static str,
        found: &'static str,
    },
    /// A table that the plan reads was never attached.
    NotAttached { name: String },
    /// An index points outside its table.
    Index {
        operation: &'static str,
        index: i64,
        rows: usize,
    },
    /// The loss does not depend on any parameter, so there is nothing to train.
    NothingToTrain,
    /// The plan has no loss: it can evaluate, not train.
    NoLoss,
    /// The card or its software.
    Cuda(CudaError),
    /// The buffers do not fit into memory.
    OutOfMemory { wanted_bytes: u64 },
}

impl Explain for EngineError {
    fn message(&self) -> Message {
        match self {
            Self::Shape {
                operation,
                expected,
                found,
            } => {
                let found = shape(found);
                message!(en: "`{operation}` needs {expected}, got shape {found}", zh: "`{operation}` 需要 {expected}，实际形状为 {found}")
            }
            Self::Setting {
                operation,
                setting,
                value,
                allowed,
            } => {
                message!(en: "`{operation}`: {setting} is {value}; allowed: {allowed}", zh: "`{operation}`：{setting} 为 {value}，允许范围是 {allowed}")
            }
            Self::DuplicateName { name } => {
                message!(en: "the model has two buffers named `{name}`", zh: "模型中有两个名为 `{name}` 的缓冲区")
            }
            Self::UnknownName { name, .. } => {
                message!(en: "the plan has no buffer named `{name}`", zh: "计划中没有名为 `{name}` 的缓冲区")
            }
            Self::Length {
                name,
                expected,
                found,
            } => {
                message!(en: "`{name}` has {expected} values, got {found}", zh: "`{name}` 应有 {expected} 个值，实际给了 {found} 个")
            }
            Self::ValueType {
                name,
                expected,
                found,
            } => {
                message!(en: "`{name}` contains {expected}, got {found}", zh: "`{name}` 的类型是 {expected}，实际给了 {found}")
            }
            Self::NotAttached { name } => {
                message!(en: "the table `{name}` was not attached before the step", zh: "执行前没有挂接数据表 `{name}`")
            }
            Self::Index {
                operation,
                index,
                rows,
            } => {
                message!(en: "`{operation}`: index {index} is out of range for a table of {rows} rows", zh: "`{operation}`：索引 {index} 超出数据表范围（共 {rows} 行）")
            }
            Self::NothingToTrain => {
                message!(en: "the loss does not depend on any parameter", zh: "损失不依赖任何参数")
            }
            Self::NoLoss => message!(en: "the plan has no loss to train on", zh: "计划中没有可训练的损失"),
            Self::Cuda(error) => error.message(),
            Self::OutOfMemory { wanted_bytes } => {
                let wanted = flatout_core::units::bytes(*wanted_bytes as f64);
                message!(en: "not enough memory: a buffer of {wanted} could not be allocated", zh: "内存不足：无法分配 {wanted} 的缓冲区")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::Cuda(error) => error.hint(),
            Self::UnknownName {
                nearest: Some(nearest),
                ..
            } => Some(message!(en: "did you mean `{nearest}`?", zh: "是否想写 `{nearest}`？")),
            Self::OutOfMemory { .. } => Some(
                message!(en: "use a smaller batch with gradient accumulation, or a smaller model", zh: "减小 batch 并使用梯度累积，或换用更小的模型"),
            ),
            _ => None,
        }
    }
}
explained!(EngineError);

impl From<CudaError> for EngineError {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::OutOfMemory { wanted_bytes, .. } => Self::OutOfMemory { wanted_bytes },
            other => Self::Cuda(other),
        }
    }
}
