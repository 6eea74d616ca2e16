//! What can go wrong between the program and the card, in words that say what to do.

use flatout_core::{Explain, Message, explained, message};

#[derive(Clone, Debug, PartialEq)]
pub enum CudaError {
    NoDriver,
    /// A driver that does not answer.
    Driver {
        reason: String,
    },
    /// The driver's library and its kernel module are of different versions.
    Mismatch,
    /// The driver supports CUDA only up to a version.
    OldDriver {
        driver: (u32, u32),
        needed: (u32, u32),
        by: &'static str,
    },
    /// Somebody has the card for himself.
    Taken {
        card: usize,
    },
    /// Not even a context fits beside what others have put on the card.
    Full {
        card: usize,
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
            Self::NoDriver => {
                message!(en: "no NVIDIA driver: libcuda.so.1 was not found", zh: "这里没有 NVIDIA 驱动：找不到 libcuda.so.1")
            }
            Self::Mismatch => {
                message!(en: "the NVIDIA driver was updated but its kernel module was not: their versions differ", zh: "NVIDIA 驱动已更新而内核模块没有：两者版本不一致")
            }
            Self::OldDriver {
                driver: (major, minor),
                needed: (wanted, at_least),
                by,
            } => {
                message!(en: "the NVIDIA driver supports CUDA up to {major}.{minor}; {by} needs \
                {wanted}.{at_least}", zh: "NVIDIA 驱动最高支持 CUDA {major}.{minor}；{by} 需要 {wanted}.{at_least}")
            }
            Self::Taken { card } => {
                message!(en: "GPU {card} is in use: another program holds it exclusively, or its compute \
                mode prohibits all use", zh: "GPU {card} 已被占用：其他程序独占了它，或其计算模式不允许使用")
            }
            Self::Full { card } => {
                message!(en: "GPU {card} is full: other programs use all of its memory", zh: "GPU {card} 显存已满：被其他程序占用")
            }
            Self::Driver { reason } => {
                message!(en: "the NVIDIA driver cannot be used: {reason}", zh: "无法使用 NVIDIA 驱动：{reason}")
            }
            Self::Device { wanted, found } => {
                message!(en: "there is no GPU {wanted}: the driver reports {found}", zh: "没有编号为 {wanted} 的 GPU：驱动只看到 {found} 个")
            }
            Self::Library { name, looked_in } => {
                let places = looked_in.join(", ");
                message!(en: "the CUDA library {name} was not found; searched {places}", zh: "找不到 CUDA 库 {name}；已查找 {places}")
            }
            Self::Call { call, reason } => {
                message!(en: "the CUDA call {call} failed: {reason}", zh: "CUDA 调用 {call} 失败：{reason}")
            }
            Self::Kernel { name, log } => {
                message!(en: "the kernel `{name}` failed to compile for this GPU:\n{log}", zh: "内核 `{name}` 无法为此 GPU 编译：\n{log}")
            }
            Self::OutOfMemory {
                wanted_bytes,
                free_bytes,
            } => {
                let wanted = flatout_core::units::bytes(*wanted_bytes as f64);
                let free = flatout_core::units::bytes(*free_bytes as f64);
                message!(en: "out of GPU memory: {wanted} needed, {free} free", zh: "显存不足：需要 {wanted}，剩余 {free}")
            }
            Self::Precision {
                precision,
                capability: (major, minor),
            } => {
                message!(en: "this GPU (compute capability {major}.{minor}) does not support {precision}", zh: "此 GPU（计算能力 {major}.{minor}）不支持 {precision}")
            }
            Self::Operation { operation } => {
                message!(en: "the operation `{operation}` does not run on CUDA", zh: "操作 `{operation}` 不能在 CUDA 上运行")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Mismatch => {
                message!(en: "restart the machine, or reload the module (sudo rmmod nvidia_uvm nvidia && sudo modprobe nvidia)", zh: "重启机器，或重新加载内核模块（sudo rmmod nvidia_uvm nvidia && sudo modprobe nvidia）")
            }
            Self::OldDriver { by: "NVRTC", .. } => {
                message!(en: "install the libraries of the driver's version (pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12), or a newer driver; or train with --device cpu", zh: "安装与驱动版本一致的库（pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12），或更新驱动；或使用 --device cpu")
            }
            Self::OldDriver { .. } => {
                message!(en: "install a newer driver (525 or later), or train with --device cpu", zh: "更新驱动（525 或更新版本），或使用 --device cpu")
            }
            Self::Taken { .. } | Self::Full { .. } => {
                message!(en: "find out who uses it with `flatout monitor --once`; use another GPU with \
                --device cuda:N, or --device cpu", zh: "用 \
                `flatout monitor --once` 查看是谁在使用；用 --device cuda:N 换一块卡，或使用 --device cpu")
            }
            Self::NoDriver | Self::Driver { .. } | Self::Device { .. } => {
                message!(en: "check this machine with `flatout doctor`, or train on the CPU with --device cpu", zh: "用 \
                `flatout doctor` 检查本机环境；或用 --device cpu 在 CPU 上训练")
            }
            Self::Library { name: "cudnn", .. } => {
                message!(en: "convolutions need cuDNN 9: pip install nvidia-cudnn-cu13 (or -cu12), or train with --device cpu", zh: "卷积需要 cuDNN 9：pip install nvidia-cudnn-cu13（或 -cu12），或使用 --device cpu")
            }
            Self::Library { .. } => {
                message!(en: "install CUDA 12 or 13, or its pip packages (they come with PyTorch), or train \
                with --device cpu", zh: "请安装 CUDA 12 或 13，或其 pip 包（随 PyTorch 一起安装），或使用 --device cpu")
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
