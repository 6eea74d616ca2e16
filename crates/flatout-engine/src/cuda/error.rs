//! What can go wrong between the program and the card, in words that say what to do.

use flatout_core::{Explain, Message, explained, message};

#[derive(Clone, Debug, PartialEq)]
pub enum CudaError {
    /// No driver, or one that does not answer.
    Driver {
        reason: String,
    },
    /// No such card.
    Device {
        wanted: usize,
        found: usize,
    },
    /// A library of CUDA is missing.
    Library {
        name: &'static str,
        looked_in: Vec<String>,
    },
    /// A call failed.
    Call {
        call: &'static str,
        reason: String,
    },
    /// A kernel does not compile: a mistake of ours, or a card too old for it.
    Kernel {
        name: String,
        log: String,
    },
    OutOfMemory {
        wanted_bytes: u64,
        free_bytes: u64,
    },
    /// The card cannot compute in this precision.
    Precision {
        precision: &'static str,
        capability: (u32, u32),
    },
    /// An operation that has no CUDA side.
    Operation {
        operation: &'static str,
    },
}

impl Explain for CudaError {
    fn message(&self) -> Message {
        match self {
            Self::Driver { reason } => {
                message!(en: "the NVIDIA driver cannot be used: {reason}", zh: "无法使用 NVIDIA 驱动：{reason}")
            }
            Self::Device { wanted, found } => {
                message!(en: "there is no GPU {wanted}: the driver shows {found}", zh: "没有编号为 {wanted} 的 GPU：驱动只看到 {found} 个")
            }
            Self::Library { name, looked_in } => {
                let places = looked_in.join(", ");
                message!(en: "the CUDA library {name} was not found; looked in {places}", zh: "找不到 CUDA 库 {name}；已查找 {places}")
            }
            Self::Call { call, reason } => {
                message!(en: "the CUDA call {call} failed: {reason}", zh: "CUDA 调用 {call} 失败：{reason}")
            }
            Self::Kernel { name, log } => {
                message!(en: "the kernel `{name}` does not compile for this GPU:\n{log}", zh: "内核 `{name}` 无法为此 GPU 编译：\n{log}")
            }
            Self::OutOfMemory {
                wanted_bytes,
                free_bytes,
            } => {
                let wanted = flatout_core::units::bytes(*wanted_bytes as f64);
                let free = flatout_core::units::bytes(*free_bytes as f64);
                message!(en: "out of GPU memory: {wanted} wanted, {free} free", zh: "显存不足：需要 {wanted}，剩余 {free}")
            }
            Self::Precision {
                precision,
                capability: (major, minor),
            } => {
                message!(en: "this GPU (compute capability {major}.{minor}) has no {precision}", zh: "此 GPU（计算能力 {major}.{minor}）不支持 {precision}")
            }
            Self::Operation { operation } => {
                message!(en: "the operation `{operation}` does not run on CUDA", zh: "操作 `{operation}` 不能在 CUDA 上运行")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Driver { .. } | Self::Device { .. } => {
                message!(en: "see what is there with: flatout doctor; or train on the CPU with --device cpu", zh: "用 flatout doctor 查看现有环境；或用 --device cpu 在 CPU 上训练")
            }
            Self::Library { name: "cudnn", .. } => {
                message!(en: "convolutions need cuDNN 9: pip install nvidia-cudnn-cu13 (or -cu12), or train with --device cpu", zh: "卷积需要 cuDNN 9：pip install nvidia-cudnn-cu13（或 -cu12），或使用 --device cpu")
            }
            Self::Library { .. } => {
                message!(en: "install CUDA 12 or 13, or its pip packages (they come with PyTorch), or train with --device cpu", zh: "请安装 CUDA 12 或 13，或其 pip 包（随 PyTorch 一起安装），或使用 --device cpu")
            }
            Self::OutOfMemory { .. } => {
                message!(en: "use a smaller batch with gradient accumulation", zh: "减小 batch 并使用梯度累积")
            }
            Self::Precision { .. } => {
                message!(en: "use --amp off or --amp fp16", zh: "请使用 --amp off 或 --amp fp16")
            }
            Self::Operation { .. } => message!(en: "train with --device cpu", zh: "请使用 --device cpu"),
            _ => return None,
        })
    }
}
explained!(CudaError);
