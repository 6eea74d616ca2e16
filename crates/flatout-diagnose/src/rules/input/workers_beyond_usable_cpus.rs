//! # workers-beyond-usable-cpus
//!
//! ## What it detects
//! There are far more DataLoader workers than CPUs this process can use, while steps wait for batches or the CPUs are fully busy.
//!
//! ## Why it is slow
//! The workers take turns on the same CPUs. Each switch costs time and cold caches, the training process itself has to queue, and the
//! memory and startup of the extra workers are wasted.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=os.cpu_count())  # 64, but the job has 4 CPUs
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=len(os.sched_getaffinity(0)) - 1)
//! ```
//!
//! ## Evidence
//! The number of workers compared with the usable CPUs (affinity and cgroup quota, not the machine's cores), time waiting for
//! batches, and CPU utilization.
//!
//! ## Fix
//! Use as many workers as the steps need, at most the usable CPUs minus one for the training process.
//!
//! ## When it is wrong
//! The workers mostly wait for a network or a slow disk: many of them then hide the latency.
//!
//! ## References
//! 446 samples/s with 4 workers, 92 with 32 (spdl issue 303). Lightning issues 15572 and 18723 on core counts that ignore cgroups.
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/15572>
//!
//! ---
//! ## 检测什么
//! worker 数远多于本进程可用的 CPU，而训练在等 batch，或 CPU 已满。
//! ## 为什么慢
//! worker 在同样的 CPU 上轮流运行：每次切换都损失时间和缓存，训练进程自己也要排队，每个 worker 的内存和启动时间都白白付出。
//! ## 证据
//! worker 数与可用 CPU 数（亲和性与 cgroup 配额的交集，而不是机器的核数）、等待 batch 的时间、CPU 使用率。
//! ## 怎么改
//! worker 数按训练的需要设置，至多为可用 CPU 数减去训练进程的那一个。
//! ## 何时不成立
//! worker 大部分时间在等网络或慢速磁盘：此时多一些可以掩盖延迟。
//! ## 参考
//! 4 个 worker 时 446 样本/秒，32 个时 92（spdl issue 303）；Lightning issue 15572 和 18723：核数没有考虑 cgroup。
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/15572>

use crate::advice;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message};
use flatout_record::Phase;

pub const ID: &str = "workers-beyond-usable-cpus";
pub const WORST: Severity = Severity::Critical;

/// Up to twice the CPUs is a habit that does little harm.
const PER_CPU: f64 = 2.0;
/// Busy share from which the workers stand in each other's way. SageMaker speaks of a CPU bottleneck from 90%.
const CPU_FULL: f64 = 0.9;
/// Workers that use less CPU than this together wait for something else.
const WAITING: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let usable = analysis.usable_cpus()?;
    let loader = analysis.train_loader()?;
    let each = loader.num_workers?;
    // Every rank on the machine starts its own.
    let ranks = analysis.local_ranks();
    let workers = each * ranks;
    if workers as f64 <= usable as f64 * PER_CPU {
        return None;
    }
    let share = window.share(Phase::Data);
    let cpu_full = analysis.host.cpu_util.is_some_and(|util| util >= CPU_FULL);
    let waiting = analysis
        .host
        .tree_cpus
        .is_some_and(|used| used < usable as f64 * WAITING);
    if waiting || (share < WARNING_SHARE && !cpu_full) {
        return None;
    }
    let suggested = advice::workers(analysis, loader).unwrap_or(1);
    let mut candidate = Candidate::new(
        ID,
        severity_of(share.max(WARNING_SHARE)),
        if ranks > 1 {
            message!(
                en: "{ranks} ranks with {each} DataLoader workers each share {usable} usable CPUs",
                zh: "{ranks} 个 rank 各启动 {each} 个 DataLoader worker，争抢 {usable} 个可用 CPU"
            )
        } else {
            message!(
                en: "{workers} DataLoader workers share {usable} usable CPUs",
                zh: "{workers} 个 DataLoader worker 争抢 {usable} 个可用 CPU"
            )
        },
    )
    .detail(message!(
        en: "This process can use only {usable} CPUs (affinity and cgroup quota); more workers queue for \
        them and slow down the training process too.",
        zh: "本进程只能使用 {usable} 个 CPU（亲和性与 cgroup 配额）；更多 worker 只会排队，还会拖慢训练进程本身。"
    ))
    .evidence(
        Evidence::new(message!(en: "DataLoader workers", zh: "DataLoader worker 数"), workers as f64, "")
            .against(usable as f64 * PER_CPU),
    )
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .place(loader.place.as_ref());
    if let Some(util) = analysis.host.cpu_util {
        let what = message!(en: "utilization of the usable CPUs", zh: "可用 CPU 的使用率");
        candidate = candidate
            .evidence(analysis.in_window(Evidence::new(what, util * 100.0, "%").against(CPU_FULL * 100.0)));
    }
    if share >= WARNING_SHARE {
        // How much of the wait is the crowd's and how much the work's own cannot be told from one run.
        candidate = candidate.claims(Stretch::Data, Reach::Specific, 0.0, window.seconds(Phase::Data));
    }
    let say = if ranks > 1 {
        message!(
            en: "num_workers={suggested} per rank: what {usable} usable CPUs can support for {ranks} ranks",
            zh: "每个 rank 用 num_workers={suggested}：{usable} 个可用 CPU 能为 {ranks} 个 rank 承载的数量"
        )
    } else {
        message!(
            en: "num_workers={suggested}: what {usable} usable CPUs can support",
            zh: "num_workers={suggested}：{usable} 个可用 CPU 能承载的数量"
        )
    };
    Some(
        candidate
            .setting("loader.num_workers", Some(each.to_string()), suggested, say)
            .code(
                loader.place.as_ref(),
                message!(
                    en: "Size it by the usable CPUs, len(os.sched_getaffinity(0)), not by the CPUs of the \
                    machine",
                    zh: "按可用 CPU 数 len(os.sched_getaffinity(0)) 设置，而不是机器的核数"
                ),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use serde_json::json;

    fn crowd(cpus: usize) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.5)
            .phase(Phase::Compute, 0.5)
            .cpus(cpus)
            .host(|host| host.cpu_util = Some(0.99))
            .workers(16, 0.12, 1 << 20)
            .loader(0, json!({"num_workers": 16}))
    }

    #[test]
    fn fires() {
        let finding = run(check, crowd(2)).unwrap();
        assert!(matches!(&finding.fixes[0], Fix::Setting { to, .. } if to == "1"));
        assert_eq!(causes(crowd(2)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, crowd(32)).is_none());
        let waiting = Build::steady(20)
            .cpus(2)
            .workers(16, 0.01, 0)
            .loader(0, json!({"num_workers": 16}));
        assert!(run(check, waiting).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
