//! # too-many-threads
//!
//! ## What it detects
//! PyTorch computes with more threads than the process has usable CPUs.
//!
//! ## Why it is slow
//! The threads of an operator wait for each other, so a thread without a CPU holds up all the others, at every operator.
//!
//! ## Example
//! ```python
//! torch.set_num_threads(64)  # in a job with 8 CPUs
//! ```
//!
//! ## Use instead
//! ```python
//! torch.set_num_threads(len(os.sched_getaffinity(0)))
//! ```
//!
//! ## Evidence
//! `torch.get_num_threads()`, the usable CPUs, and the time in which the training thread was ready to run but had no CPU.
//!
//! ## Fix
//! Set `torch.set_num_threads(N)` or `OMP_NUM_THREADS=N`, with N at most the usable CPUs minus one per DataLoader worker.
//!
//! ## When it is wrong
//! Never: more threads than CPUs do not compute faster.
//!
//! ## References
//! The run delay of the thread, from `/proc/PID/schedstat`.
//! <https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html>
//!
//! ---
//! ## 检测什么
//! PyTorch 计算所用的线程多于本进程可用的 CPU。
//! ## 为什么慢
//! 一个算子的各线程互相等待；没有 CPU 的线程在每个算子处拖住其他线程。
//! ## 证据
//! `torch.get_num_threads()`、可用 CPU 数，以及训练线程就绪却没有 CPU 的时间。
//! ## 怎么改
//! 用 `torch.set_num_threads(N)` 或 `OMP_NUM_THREADS=N`，至多为可用 CPU 数，再为每个 worker 减一。
//! ## 何时不成立
//! 没有坏处：线程多于 CPU 不会更快。
//! ## 参考
//! 线程的等待时间来自 `/proc/PID/schedstat`。
//! <https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html>

use crate::account::activity::Activity;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "too-many-threads";
pub const WORST: Severity = Severity::Critical;

/// Threads per usable CPU from which on they get in each other's way.
const TOO_MANY: f64 = 1.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let usable = analysis.usable_cpus()? as f64;
    let threads = analysis.facts.number("threads.torch")?;
    if analysis.device() == Device::Cuda || threads < usable * TOO_MANY {
        return None;
    }
    let account = analysis.account.as_ref()?;
    let waiting_s = account.seconds(Activity::Descheduled) + account.seconds(Activity::Waiting);
    let share = waiting_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let compute_s = window.seconds(Phase::Compute).max(waiting_s);
    let shown = units::percent(share);
    let place = analysis.mention(&["set_num_threads", "OMP_NUM_THREADS"]);
    let wanted = usable as u64;
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Too many threads ({threads} on {usable} CPUs): training waits {shown} of the time",
                zh: "PyTorch 在 {usable} 个 CPU 上使用 {threads} 个线程：训练线程有 {shown} 的时间在等 CPU"
            ),
        )
        .evidence(
            Evidence::new(message!(en: "PyTorch threads", zh: "PyTorch 线程数"), threads, "").against(usable),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time ready to run but without a CPU", zh: "就绪却没有 CPU 的时间"),
                    share * 100.0,
                    "%",
                )
                .against(WARNING_SHARE * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(
            Stretch::Dispatch,
            Reach::Measured,
            waiting_s,
            compute_s * (1.0 - usable / threads),
        )
        .setting(
            "threads.torch",
            Some(threads.to_string()),
            wanted,
            message!(
                en: "torch.set_num_threads({wanted}), or OMP_NUM_THREADS={wanted}",
                zh: "torch.set_num_threads({wanted})，或 OMP_NUM_THREADS={wanted}"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn crowded(threads: u64, waited_ms: f64) -> Build {
        Build::steady(20)
            .cpus(2)
            .fact("device", "cpu")
            .fact("threads.torch", threads)
            .stack_of(&["<module> (t.py:9)"], 100, Some(Phase::Compute), false)
            .descheduled(waited_ms, 1000.0)
    }

    #[test]
    fn fires() {
        let finding = run(check, crowded(64, 400.0)).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, crowded(2, 400.0)).is_none());
        assert!(run(check, crowded(64, 20.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
