//! # cpu-threads-idle
//!
//! ## What it detects
//! The model trains on the CPU with fewer threads than usable CPUs, and the other CPUs are idle.
//!
//! ## Why it is slow
//! PyTorch runs an operation only on its intra-op threads; the other CPUs do nothing.
//!
//! ## Example
//! ```python
//! torch.set_num_threads(1)  # on 16 CPUs
//! ```
//!
//! ## Use instead
//! ```python
//! torch.set_num_threads(len(os.sched_getaffinity(0)))
//! ```
//!
//! ## Evidence
//! PyTorch's thread count, the usable CPUs and their utilization, and the time spent computing.
//!
//! ## Fix
//! Set `OMP_NUM_THREADS` or `torch.set_num_threads` to the usable CPUs that the DataLoader workers leave free.
//!
//! ## When it is wrong
//! The model is so small that a second thread costs more than it gains.
//!
//! ## References
//! PyTorch's notes on CPU threading.
//! <https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html>
//!
//! ---
//! ## 检测什么
//! 在 CPU 上训练，线程数少于可用 CPU，而那些 CPU 空闲。
//! ## 为什么慢
//! PyTorch 只把一个算子分给它的算子内线程；其余 CPU 什么都不做。
//! ## 证据
//! PyTorch 的线程数、可用 CPU 及其使用率、计算时间。
//! ## 怎么改
//! 把 `OMP_NUM_THREADS` 或 `torch.set_num_threads` 设为除去 worker 后剩下的可用 CPU 数。
//! ## 何时不成立
//! 模型太小，第二个线程得不偿失。
//! ## 参考
//! PyTorch 关于 CPU 线程的说明。
//! <https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Fix, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "cpu-threads-idle";
pub const WORST: Severity = Severity::Warning;

/// The steps must be what takes the time.
const COMPUTE_SHARE: f64 = 0.6;
/// Below this use, CPUs are free.
const CPU_ROOM: f64 = 0.7;
/// A step shorter than this has little that can be shared out (a thread pool's wake-up costs some 10 µs an operation).
const STEP_MS: f64 = 5.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.device() != Device::Cpu || window.share(Phase::Compute) < COMPUTE_SHARE {
        return None;
    }
    let usable = analysis.usable_cpus()? as u64;
    let threads = analysis.facts.number("threads.torch")? as u64;
    let workers = analysis
        .train_loader()
        .and_then(|loader| loader.num_workers)
        .unwrap_or(0);
    let suggested = usable.saturating_sub(workers).max(1);
    let util = analysis.host.cpu_util.filter(|util| *util < CPU_ROOM)?;
    if threads == 0 || suggested < threads * 2 || window.ms_per_step(Phase::Compute) < STEP_MS {
        return None;
    }
    let compute_s = window.seconds(Phase::Compute);
    let possible_s = compute_s * (1.0 - threads as f64 / suggested as f64);
    let used = units::percent(util);
    Some(
        Candidate::new(
            ID,
            severity_of((possible_s / window.wall_s()).max(WARNING_SHARE)).min(WORST),
            message!(
                en: "PyTorch computes with {threads} thread(s) on {usable} usable CPUs ({used} used)",
                zh: "PyTorch 只用 {threads} 个线程计算，而可用 CPU 有 {usable} 个（使用率 {used}）"
            ),
        )
        .confidence(Confidence::Medium)
        .place(analysis.mention(&["set_num_threads", "OMP_NUM_THREADS"]).as_ref())
        .evidence(
            Evidence::new(message!(en: "PyTorch threads", zh: "PyTorch 线程数"), threads as f64, "")
                .against(suggested as f64),
        )
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "utilization of the usable CPUs", zh: "可用 CPU 的使用率"), util * 100.0, "%")
                .against(CPU_ROOM * 100.0),
        ))
        .claims(Stretch::Device, Reach::Likely, possible_s * 0.2, possible_s)
        .fix(Fix::Setting {
            setting: "threads.torch".into(),
            from: Some(threads.to_string()),
            to: suggested.to_string(),
            say: message!(
                en: "torch.set_num_threads({suggested}), or OMP_NUM_THREADS={suggested}",
                zh: "torch.set_num_threads({suggested})，或 OMP_NUM_THREADS={suggested}"
            ),
        })
        .code(
            None,
            message!(
                en: "Look for torch.set_num_threads in the program and for OMP_NUM_THREADS in its environment",
                zh: "检查程序中的 torch.set_num_threads 和环境变量 OMP_NUM_THREADS"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn single(threads: u64) -> Build {
        Build::steady(20)
            .cpus(8)
            .batch(512)
            .host(|host| host.cpu_util = Some(0.13))
            .fact("device", "cpu")
            .fact("threads.torch", threads)
    }

    #[test]
    fn fires() {
        assert!(run(check, single(1)).is_some());
        assert_eq!(causes(single(1)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, single(8)).is_none());
        assert!(run(check, single(1).gpu(|_| {})).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
