//! # host-bound-dispatch
//!
//! ## What it detects
//! The GPU is idle while the training process is busy launching work: Python and kernel launches take longer than the kernels.
//!
//! ## Why it is slow
//! Every operation costs several microseconds of Python and launch overhead, whatever its size. Many small operations (a loop over
//! time steps, an unfused optimizer, per-layer bookkeeping) leave gaps between kernels.
//!
//! ## Example
//! ```python
//! model = Model().cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.compile(Model().cuda(), mode="reduce-overhead")
//! ```
//!
//! ## Evidence
//! The GPU's busy share compared with the time the CPU spends computing or launching work. Data loading, copies and synchronization
//! do not explain the difference.
//!
//! ## Fix
//! Use fewer, larger operations: a larger batch, `torch.compile(mode="reduce-overhead")` or CUDA graphs, a fused optimizer. More
//! workers do not help, because nothing waits for data.
//!
//! ## When it is wrong
//! Real CPU work inside the step (NumPy, tokenization) counts to the same phase.
//!
//! ## References
//! LSTM 3×256 with batch size 512 on an H200: 13.6 ms per step with the data on the GPU, 3.0 ms with CUDA graphs. HTA calls a launch
//! issued after the previous kernel ended "host wait".
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs>
//!
//! ---
//! ## 检测什么
//! 训练进程忙于下发计算，而 GPU 空闲：Python 和下发比 kernel 慢。
//! ## 为什么慢
//! 每个算子不论大小都要花几微秒的 Python 和下发时间。大量小算子（按时间步循环、未融合的优化器、逐层的额外处理）会在 kernel 之间留下空隙。
//! ## 证据
//! GPU 的忙碌占比，对比主机计算或下发的时间；数据、拷贝和同步都不能解释它。
//! ## 怎么改
//! 更少、更大的算子：更大的 batch、`torch.compile(mode="reduce-overhead")` 或 CUDA graph、fused 优化器。不是增加 worker：没有人在等数据。
//! ## 何时不成立
//! 步骤中真正的 CPU 工作（NumPy、分词）也计入同一阶段。
//! ## 参考
//! LSTM 3×256、batch 512、H200：数据在 GPU 上时每步 13.6 ms，用 CUDA graph 为 3.0 ms。HTA 把前一个 kernel 结束后才发出的下发称为 “host wait”。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs>

use crate::advice;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "host-bound-dispatch";
pub const WORST: Severity = Severity::Critical;

/// NVML counts any kernel as busy, so a GPU that launches cannot keep up with reads lower than this.
const GPU_BUSY: f64 = 0.7;
/// Share of the window in which the host launches.
const COMPUTE_SHARE: f64 = 0.4;

/// With so many reads of the device in a step the queue of launches is drained again and again: the host can never run ahead,
/// and the gaps are the reads' doing.
const READS_THAT_DRAIN: f64 = 4.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let reads: f64 = analysis.syncs.iter().map(|site| site.per_step()).sum();
    if reads >= READS_THAT_DRAIN {
        return None;
    }
    if analysis.device() != Device::Cuda || window.share(Phase::Compute) < COMPUTE_SHARE {
        return None;
    }
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let idle_s = analysis.dispatch_idle_s()?;
    let share = idle_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (shown, launching) = (units::percent(busy), units::percent(window.share(Phase::Compute)));
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "The GPU is busy only {shown} of the time: the CPU spends {launching} launching work",
            zh: "GPU 只有 {shown} 的时间忙碌：CPU 有 {launching} 的时间在下发计算"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间"),
                busy * 100.0,
                "%",
            )
            .against(GPU_BUSY * 100.0),
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Compute, COMPUTE_SHARE))
    .claims(Stretch::Dispatch, Reach::Likely, idle_s * 0.2, idle_s);
    Some(with_fixes(candidate, analysis))
}

fn with_fixes(candidate: Candidate, analysis: &Analysis) -> Candidate {
    let mut candidate = candidate;
    if advice::may_compile(analysis) {
        candidate = candidate.setting(
            "compile",
            None,
            "reduce-overhead",
            message!(
                en: "torch.compile(model, mode=\"reduce-overhead\"): turns all launches of a step into one \
                CUDA graph",
                zh: "torch.compile(model, mode=\"reduce-overhead\")：一步的下发合并成一个 CUDA graph"
            ),
        );
    }
    if analysis
        .window
        .as_ref()
        .and_then(|window| window.samples_per_step())
        .is_some()
    {
        candidate = candidate.code(
            analysis.loop_place().as_ref(),
            message!(
                en: "Increase the batch size while samples/s rise: the launches of a step cost the same",
                zh: "只要 samples/s 还在上升就增大 batch：一步的下发开销不变"
            ),
        );
    }
    refuse_workers(candidate, analysis)
}

/// Nobody waits for batches where launching is what takes the time.
pub(super) fn refuse_workers(candidate: Candidate, analysis: &Analysis) -> Candidate {
    candidate.refused(
        "loader.num_workers",
        message!(
            en: "more workers will not help: steps wait for batches only {} of the time",
            zh: "更多 worker：不行；训练只有 {} 的时间在等 batch",
            units::percent(analysis.share(Phase::Data))
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn launching(util: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(util))
            .fact("amp.dtype", "bf16")
    }

    #[test]
    fn fires() {
        assert!(run(check, launching(0.3)).is_some());
        assert_eq!(causes(launching(0.3)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, launching(0.95)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
