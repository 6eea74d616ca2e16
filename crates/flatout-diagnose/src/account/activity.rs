//! What the host does in a sample.

use super::frame::Frame;
use flatout_core::{Message, message};
use flatout_record::{Blocked, GpuState, Phase, StackCount};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// The GPU computes, whatever the host does.
    GpuComputing,
    GpuCommunicating,
    /// The GPU copies and does nothing else.
    GpuCopying,
    /// Waiting for a batch that others prepare.
    WaitingForBatch,
    /// Preparing a batch in the training process.
    PreparingBatch,
    Copying,
    /// In an operator, without the interpreter's lock.
    Operators,
    /// The interpreter, or a library that holds its lock.
    Python,
    /// Blocked until the device has finished.
    Synchronizing,
    Evaluating,
    Saving,
    /// Reading, writing or flushing files.
    FileAccess,
    Sleeping,
    /// In a collective that not every rank has reached.
    WaitingForRank,
    /// In a collective that every rank has reached.
    Communicating,
    /// Waiting for a lock, a thread, a socket or another process.
    Waiting,
    /// Python's garbage collector, where the program did not call it.
    CollectingGarbage,
    /// The kernel hands out pages of memory on first use.
    FaultingPages,
    /// Ready to run, but no CPU is free.
    Descheduled,
    Unexplained,
}

impl Activity {
    /// Whether the GPU works.
    pub fn on_gpu(self) -> bool {
        matches!(
            self,
            Self::GpuComputing | Self::GpuCommunicating | Self::GpuCopying
        )
    }

    /// Whether the thread seems to use a CPU.
    pub fn runs(self) -> bool {
        matches!(
            self,
            Self::PreparingBatch
                | Self::Copying
                | Self::Operators
                | Self::Python
                | Self::Evaluating
                | Self::Saving
        )
    }

    /// As in JSON: `waiting-for-batch`.
    pub fn id(self) -> &'static str {
        match self {
            Self::GpuComputing => "gpu-computing",
            Self::GpuCommunicating => "gpu-communicating",
            Self::GpuCopying => "gpu-copying",
            Self::WaitingForBatch => "waiting-for-batch",
            Self::PreparingBatch => "preparing-batch",
            Self::Copying => "copying",
            Self::Operators => "operators",
            Self::Python => "python",
            Self::Synchronizing => "synchronizing",
            Self::Evaluating => "evaluating",
            Self::Saving => "saving",
            Self::FileAccess => "file-access",
            Self::Sleeping => "sleeping",
            Self::WaitingForRank => "waiting-for-rank",
            Self::Communicating => "communicating",
            Self::Waiting => "waiting",
            Self::CollectingGarbage => "collecting-garbage",
            Self::FaultingPages => "faulting-pages",
            Self::Descheduled => "descheduled",
            Self::Unexplained => "unexplained",
        }
    }

    pub fn name(self) -> Message {
        match self {
            Self::GpuComputing => message!(en: "GPU computing", zh: "GPU 计算"),
            Self::GpuCommunicating => message!(en: "GPU communicating", zh: "GPU 通信"),
            Self::GpuCopying => message!(en: "GPU copying", zh: "GPU 拷贝"),
            Self::WaitingForBatch => message!(en: "waiting for batches", zh: "等待 batch"),
            Self::PreparingBatch => {
                message!(en: "preparing batches in the training process", zh: "在训练进程中准备 batch")
            }
            Self::Copying => message!(en: "copying to the GPU", zh: "拷贝到 GPU"),
            Self::Operators => message!(en: "operators", zh: "算子"),
            Self::Python => message!(en: "Python code", zh: "Python 代码"),
            Self::Synchronizing => message!(en: "blocked in synchronization", zh: "阻塞在同步上"),
            Self::Evaluating => message!(en: "evaluation", zh: "评估"),
            Self::Saving => message!(en: "saving checkpoints", zh: "保存 checkpoint"),
            Self::FileAccess => message!(en: "file access", zh: "文件读写"),
            Self::Sleeping => message!(en: "sleeping", zh: "睡眠"),
            Self::WaitingForRank => message!(en: "waiting for a slower rank", zh: "等待较慢的 rank"),
            Self::Communicating => message!(en: "transferring between ranks", zh: "rank 之间传输"),
            Self::Waiting => message!(en: "waiting for a lock, thread or process", zh: "等待锁、线程或进程"),
            Self::CollectingGarbage => message!(en: "garbage collection", zh: "垃圾回收"),
            Self::FaultingPages => message!(en: "page faults", zh: "缺页"),
            Self::Descheduled => message!(en: "waiting for a free CPU", zh: "等待空闲的 CPU"),
            Self::Unexplained => message!(en: "unexplained", zh: "未能解释"),
        }
    }
}

/// What the training thread does in these samples.
pub fn of(stack: &StackCount, frames: &[Frame]) -> Activity {
    match stack.gpu {
        Some(GpuState::Computing) => return Activity::GpuComputing,
        Some(GpuState::Communicating) => return Activity::GpuCommunicating,
        Some(GpuState::Copying) => return Activity::GpuCopying,
        Some(GpuState::Idle) | None => {}
    }
    if saves(frames) {
        return Activity::Saving;
    }
    match stack.phase {
        Some(Phase::Eval) => Activity::Evaluating,
        Some(Phase::Checkpoint) => Activity::Saving,
        Some(Phase::Transfer) => Activity::Copying,
        Some(Phase::Sync) => Activity::Synchronizing,
        Some(Phase::Data) if waits_for_workers(frames) => Activity::WaitingForBatch,
        Some(Phase::Data) => Activity::PreparingBatch,
        Some(Phase::Compute | Phase::Other) | None => within_step(stack, frames),
    }
}

/// What a phase is where no sample saw it.
pub fn of_phase(phase: Phase) -> Activity {
    match phase {
        Phase::Data => Activity::WaitingForBatch,
        Phase::Transfer => Activity::Copying,
        Phase::Sync => Activity::Synchronizing,
        Phase::Eval => Activity::Evaluating,
        Phase::Checkpoint => Activity::Saving,
        Phase::Compute | Phase::Other => Activity::Unexplained,
    }
}

/// Writing a checkpoint, also in a framework's own way.
fn saves(frames: &[Frame]) -> bool {
    frames.iter().any(|frame| {
        let save = frame.function.rsplit('.').next() == Some("save");
        save && frame.in_file("torch/serialization.py")
            || frame.in_file("callbacks/model_checkpoint.py")
            || frame.function.ends_with("_save_checkpoint") && frame.package() == Some("transformers")
    })
}

/// The loader's process waits for its workers' queue or its pinning thread.
fn waits_for_workers(frames: &[Frame]) -> bool {
    let loader = frames
        .iter()
        .rposition(|frame| frame.in_file("torch/utils/data/dataloader.py"));
    loader.is_some_and(|at| {
        // Newer interpreters name the class as well.
        let waits = |frame: &Frame| {
            let name = frame.function.rsplit('.').next();
            name == Some("_try_get_data") || name == Some("_get_data")
        };
        waits(&frames[at]) || frames[at..].iter().any(waits)
    })
}

fn within_step(stack: &StackCount, frames: &[Frame]) -> Activity {
    match stack.blocked {
        // On a GPU a thread of its own runs backward, and the training thread waits for it.
        Some(Blocked::Lock) if frames.iter().any(Frame::is_backward) => Activity::Operators,
        Some(Blocked::Sleep) => Activity::Sleeping,
        Some(Blocked::File | Blocked::Flush) => Activity::FileAccess,
        Some(Blocked::Process | Blocked::Poll | Blocked::Lock) => Activity::Waiting,
        _ if stack.gil => Activity::Python,
        _ => Activity::Operators,
    }
}
