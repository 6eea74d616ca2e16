//! # gpu-unused
//!
//! ## What it detects
//! A GPU is available, but training runs on the CPU, or uses fewer GPUs than it was given.
//!
//! ## Why it is slow
//! The fastest processor of the machine does nothing: the model was never moved to it, or PyTorch was built without CUDA.
//!
//! ## Example
//! ```python
//! model = Model()
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//! ```
//!
//! ## Use instead
//! ```python
//! model = Model().to("cuda")
//! for x, y in loader:
//!     loss = criterion(model(x.to("cuda")), y.to("cuda"))
//! ```
//!
//! ## Evidence
//! The GPUs in the record, the model's device, and the utilization of each GPU. Load on a GPU that lists processes, none of them of this
//! run, belongs to other programs and does not count.
//!
//! ## Fix
//! Move the model (`model.to("cuda")`) and each batch to the GPU. Install a PyTorch build with CUDA. For several GPUs, use `torchrun`
//! and `DistributedDataParallel`.
//!
//! ## When it is wrong
//! The GPUs belong to other users, or this run must not use them (`CUDA_VISIBLE_DEVICES`).
//!
//! ## References
//! jobstats reports GPUs that were allocated but not used.
//! <https://docs.pytorch.org/get-started/locally/>
//!
//! ---
//! ## 检测什么
//! 机器有 GPU，训练却在 CPU 上运行，或使用的 GPU 少于分配的数量。
//! ## 为什么慢
//! 机器上最快的处理器什么都不做：模型从未移到它上面，或 PyTorch 没有带 CUDA。
//! ## 证据
//! 记录中的 GPU、模型所在的设备、每块 GPU 的利用率。若某块 GPU 上列出的进程都不属于本次运行，其负载来自其他程序，不计入。
//! ## 怎么改
//! `model.to("cuda")`，batch 也一样；带 CUDA 的 PyTorch；多块 GPU 用 `torchrun` 和 `DistributedDataParallel`。
//! ## 何时不成立
//! 被别人使用的 GPU，或本次运行不得使用的 GPU（`CUDA_VISIBLE_DEVICES`）。
//! ## 参考
//! jobstats 会指出已分配却没有使用的 GPU。
//! <https://docs.pytorch.org/get-started/locally/>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message};

pub const ID: &str = "gpu-unused";
pub const WORST: Severity = Severity::Critical;

/// Utilisation of a GPU that does nothing.
const UTIL: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let gpus = analysis.gpus.len();
    if gpus == 0 {
        return None;
    }
    if analysis.device() == Device::Cpu {
        // The load of other programs does not count: neither on another GPU nor on one without a process of this run.
        let others =
            |gpu: &&crate::analysis::gpus::Gpu| gpu.only_others && gpu.util.is_some_and(|util| util >= UTIL);
        let own = analysis.gpus.iter().filter(|gpu| !others(gpu));
        let busy = own.filter_map(|gpu| gpu.util).fold(0.0, f64::max);
        if busy >= UTIL {
            return None;
        }
        let taken = analysis.gpus.iter().filter(others).count();
        let cuda = analysis.facts.text("torch.cuda");
        let mut candidate = Candidate::new(
            ID,
            Severity::Critical,
            message!(
                en: "Training runs on the CPU although {gpus} GPU(s) are visible",
                zh: "训练在 CPU 上运行，而机器上有 GPU（可见 {gpus} 个）"
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "GPU utilization by this run", zh: "本次运行的 GPU 利用率"),
                    busy * 100.0,
                    "%",
                )
                .against(UTIL * 100.0),
            ),
        )
        .evidence(analysis.in_window(Evidence::new(
            message!(en: "steps on the CPU", zh: "在 CPU 上运行的步数"),
            window.steps as f64,
            "",
        )));
        if taken > 0 {
            // In a container the driver's process numbers may be the host's: then the others could be this run.
            let others = Evidence::new(
                message!(en: "GPUs in use by other programs", zh: "被其他程序使用的 GPU 数"),
                taken as f64,
                "",
            );
            candidate = candidate
                .evidence(analysis.in_window(others))
                .confidence(Confidence::Medium);
        }
        return Some(match cuda.as_deref() {
            Some("none" | "false") => candidate.code(
                None,
                message!(
                    en: "This PyTorch build has no CUDA support: install one that does",
                    zh: "当前 PyTorch 不支持 CUDA：请安装带 CUDA 的版本"
                ),
            ),
            // Before the optimizer is built, the model must be where it will stay.
            _ => candidate.code(
                analysis.facts.place("optimizer.class").as_ref(),
                message!(
                    en: "Move the model and each batch to the GPU: .to(\"cuda\", non_blocking=True)",
                    zh: "把模型和每个 batch 移到 GPU：.to(\"cuda\", non_blocking=True)"
                ),
            ),
        });
    }
    left_idle(analysis, gpus)
}

/// Some of several visible GPUs did nothing.
fn left_idle(analysis: &Analysis, gpus: usize) -> Option<Candidate> {
    let visible = analysis
        .facts
        .number("device.count")
        .map_or(gpus, |count| count as usize);
    if analysis.device() != Device::Cuda || visible < 2 || gpus < 2 {
        return None;
    }
    let idle = |gpu: &&crate::analysis::gpus::Gpu| gpu.util.is_some_and(|util| util < UTIL);
    let unused: Vec<String> = analysis
        .gpus
        .iter()
        .filter(idle)
        .map(|gpu| gpu.index.to_string())
        .collect();
    if unused.is_empty() || visible < gpus {
        return None;
    }
    let (count, which) = (unused.len(), unused.join(", "));
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "{count} of {gpus} GPUs did no work: {which}",
                zh: "{gpus} 个 GPU 中有 {count} 个没有工作：{which}"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "GPUs without work", zh: "没有工作的 GPU 数"), count as f64, "").against(1.0),
        ))
        .code(
            None,
            message!(
                en: "Start with torchrun and wrap the model in DistributedDataParallel, or request fewer GPUs",
                zh: "用 torchrun 启动并用 DistributedDataParallel 包装模型，或申请更少的 GPU"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    #[test]
    fn fires() {
        let build = Build::steady(20)
            .gpu(|gpu| gpu.util = Some(0.0))
            .fact("device", "cpu");
        assert_eq!(run(check, build).unwrap().severity, Severity::Critical);
    }

    #[test]
    fn load_of_other_programs_does_not_count() {
        let with = |pid: u32| {
            let process = flatout_record::GpuProcess {
                pid,
                ..flatout_record::GpuProcess::default()
            };
            Build::steady(20)
                .workers(0, 1.0, 0)
                .gpu(|gpu| {
                    gpu.util = Some(0.9);
                    gpu.processes = Some(vec![process]);
                })
                .fact("device", "cpu")
        };
        assert_eq!(run(check, with(4242)).unwrap().confidence, Confidence::Medium);
        assert!(run(check, with(100)).is_none(), "the run itself uses the GPU");
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20).gpu(|gpu| gpu.util = Some(0.9))).is_none());
        assert!(run(check, Build::steady(20).fact("device", "cpu")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
