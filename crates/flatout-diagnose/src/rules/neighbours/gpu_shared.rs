//! # gpu-shared
//!
//! ## What it detects
//! A process that does not belong to the run uses the same GPU.
//!
//! ## Why it is slow
//! Two programs take turns on one GPU and share its memory.
//!
//! ## Example
//! ```sh
//! python train.py   # GPU 0, as another job
//! ```
//!
//! ## Use instead
//! ```sh
//! CUDA_VISIBLE_DEVICES=1 python train.py
//! ```
//!
//! ## Evidence
//! The number of other processes on the GPU, and the memory they hold.
//!
//! ## Fix
//! Move one of them, or end processes left over from an earlier run.
//!
//! ## When it is wrong
//! In a container, the driver may report process ids of the host. If none of them belongs to the run, the rule does not fire. A
//! display server holds a little memory and does no harm.
//!
//! ## References
//! The process list of `nvidia-smi`; jobstats.
//! See also `gpu-unused` and `gpu-memory-near-limit`.
//! <https://docs.nvidia.com/deploy/nvidia-smi/index.html>
//!
//! ---
//! ## 检测什么
//! 不属于本次运行的进程在使用同一块 GPU。
//! ## 为什么慢
//! 两个程序在一块 GPU 上轮流运行，并共用显存。
//! ## 证据
//! GPU 上其他进程的进程号和它们占用的显存。
//! ## 怎么改
//! 移走其中一个，或结束先前运行遗留的进程。
//! ## 何时不成立
//! 在容器中，驱动可能以宿主机的进程号报告；若其中没有本次运行自己的进程，本规则不会报告。显示服务占用少量显存，没有影响。
//! ## 参考
//! nvidia-smi 的进程列表；jobstats。
//! 另见 `gpu-unused`、`gpu-memory-near-limit`。
//! <https://docs.nvidia.com/deploy/nvidia-smi/index.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Fix, Severity, message, units};

pub const ID: &str = "gpu-shared";
pub const WORST: Severity = Severity::Warning;

/// A CUDA context alone takes some 300 to 500 MiB; a display server less.
const MEMORY_BYTES: f64 = 256.0 * 1048576.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // What happens on a card that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let gpu = analysis
        .gpus
        .iter()
        .find(|gpu| gpu.foreign_mem_bytes >= MEMORY_BYTES)?;
    let foreign = gpu.foreign.as_ref().filter(|foreign| !foreign.is_empty())?;
    let pids: Vec<String> = foreign.iter().take(5).map(u32::to_string).collect();
    let (index, count, pids) = (gpu.index, foreign.len(), pids.join(", "));
    let memory = units::bytes(gpu.foreign_mem_bytes);
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "GPU {index} is shared with {count} other process(es) ({pids}) that hold {memory}",
                zh: "GPU {index} 上还有 {count} 个其他进程（{pids}），占用 {memory}"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "memory of other processes on this GPU", zh: "其他进程占用的显存"),
                    gpu.foreign_mem_bytes / 1048576.0,
                    "MiB",
                )
                .against(MEMORY_BYTES / 1048576.0),
            ),
        )
        .fix(Fix::Command {
            command: format!("ps -o pid,user,etime,cmd -p {pids}").replace(", ", ","),
            say: message!(en: "see who owns these processes", zh: "查看它们属于谁"),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::GpuProcess;

    fn with(pids: &[u32]) -> Build {
        let process = |pid: &u32| GpuProcess {
            pid: *pid,
            mem_bytes: Some(2 << 30),
            ..GpuProcess::default()
        };
        Build::steady(20)
            .workers(0, 1.0, 0)
            .gpu(|gpu| gpu.processes = Some(pids.iter().map(process).collect()))
    }

    #[test]
    fn fires() {
        assert!(run(check, with(&[100, 4242])).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, with(&[100])).is_none());
        assert!(
            run(check, with(&[4242])).is_none(),
            "none of ours is named, so nothing can be told"
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
