//! # cpu-stolen
//!
//! ## What it detects
//! Other processes on the machine, or the hypervisor, use CPUs that the run counts on.
//!
//! ## Why it is slow
//! The training process and its workers queue for CPUs.
//!
//! ## Example
//! ```sh
//! sbatch --wrap "python train.py"
//! ```
//!
//! ## Use instead
//! ```sh
//! sbatch --cpus-per-task=8 --wrap "python train.py"
//! ```
//!
//! ## Evidence
//! Utilization of the usable CPUs compared with what the run's own processes use, and steal time.
//!
//! ## Fix
//! Reserve CPUs for the job (a cgroup, Slurm's `--cpus-per-task`, `taskset`), or end the other jobs.
//!
//! ## When it is wrong
//! The run itself started the work outside its process tree.
//!
//! ## References
//! Cloud vendors call steal time above 10% noisy. gpuprof watches the same.
//! See also `input-cpus-exhausted` and `too-many-threads`.
//! <https://man7.org/linux/man-pages/man5/proc_stat.5.html>
//!
//! ---
//! ## 检测什么
//! 本次运行可用的 CPU 被别人占用：机器上的其他进程，或虚拟化层。
//! ## 为什么慢
//! 训练进程和它的 worker 要排队等待设置中算在内的 CPU。
//! ## 证据
//! 可用 CPU 的使用率与本次运行自己的进程所用之比；steal 时间。
//! ## 怎么改
//! 为作业预留 CPU（cgroup、Slurm `--cpus-per-task`、`taskset`），或结束其他程序。
//! ## 何时不成立
//! 本次运行自己在进程树之外启动的工作。
//! ## 参考
//! steal 时间达到 10% 即为云厂商所说的“吵闹邻居”。gpuprof 也监视这一点。
//! 另见 `input-cpus-exhausted`、`too-many-threads`。
//! <https://man7.org/linux/man-pages/man5/proc_stat.5.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "cpu-stolen";
pub const WORST: Severity = Severity::Warning;

/// Steal time of a hypervisor.
const STEAL: f64 = 0.1;
/// Usable CPUs that are full, and the part of them that others use.
const FULL: f64 = 0.9;
const OTHERS: f64 = 0.3;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let usable = analysis.usable_cpus()? as f64;
    let steal = analysis.host.steal.unwrap_or(0.0);
    let others = match (analysis.host.cpu_util, analysis.host.tree_cpus) {
        (Some(util), Some(own)) if util >= FULL => (util - own / usable).max(0.0),
        _ => 0.0,
    };
    let (share, limit) = if steal >= STEAL {
        (steal, STEAL)
    } else if others >= OTHERS {
        (others, OTHERS)
    } else {
        return None;
    };
    let shown = units::percent(share);
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "Other programs use {shown} of the {usable} CPUs available to this run",
                zh: "本次运行可用的 {usable} 个 CPU 有 {shown} 被其他程序占用"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "CPU time used by other programs", zh: "被其他程序占用的 CPU 时间"),
                    share * 100.0,
                    "%",
                )
                .against(limit * 100.0),
            ),
        )
        .code(
            None,
            message!(
                en: "Reserve CPUs for the job (a cgroup, Slurm's --cpus-per-task, taskset), or move the \
                other programs",
                zh: "为任务预留 CPU（cgroup、Slurm 的 --cpus-per-task、taskset），或迁走其他程序"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn machine(util: f64, own: f64) -> Build {
        Build::steady(20)
            .cpus(4)
            .host(|host| host.cpu_util = Some(util))
            .workers(0, own, 0)
    }

    #[test]
    fn fires() {
        assert!(run(check, machine(0.99, 1.0)).is_some());
        assert!(run(check, machine(0.5, 1.0).host(|host| host.steal = Some(0.2))).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, machine(0.99, 3.9)).is_none());
        assert!(run(check, machine(0.4, 1.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
