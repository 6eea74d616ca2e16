//! # too-few-workers
//!
//! ## What it detects
//! Steps wait for DataLoader workers that are always busy, while usable CPUs are idle.
//!
//! ## Why it is slow
//! A batch costs more CPU time than these few workers can deliver in the time of a step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=2)  # on 16 CPUs
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=12)
//! ```
//!
//! ## Evidence
//! Time waiting for batches, how busy each worker is, and the utilization of the usable CPUs.
//!
//! ## Fix
//! Use more workers: the work per batch divided by the time that a step leaves, at most the usable CPUs minus one.
//!
//! ## When it is wrong
//! The workers take turns on a lock or share one disk: more of them would then wait for each other.
//!
//! ## References
//! TraceML warns from 10% of the time, gpuprof from 15%. PyTorch issue 23048 asks for automatic tuning of workers.
//! <https://github.com/pytorch/pytorch/issues/23048>
//!
//! ---
//! ## 检测什么
//! 训练在等一直忙碌的 worker，而可用 CPU 却有空闲。
//! ## 为什么慢
//! 一个 batch 所需的 CPU 时间，超过了这几个 worker 在一步时间内能提供的量。
//! ## 证据
//! 等待 batch 的时间；每个 worker 的忙碌程度；可用 CPU 的使用率。
//! ## 怎么改
//! 增加 worker：用一个 batch 的工作量除以一步留出的时间，至多为可用 CPU 数减一。
//! ## 何时不成立
//! worker 轮流持有同一把锁，或共用一块磁盘：更多 worker 只会互相等待。
//! ## 参考
//! 等待占比：TraceML 10%，gpuprof 15%。“请替我调好”：PyTorch issue 23048。
//! <https://github.com/pytorch/pytorch/issues/23048>

use crate::advice;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "too-few-workers";
pub const WORST: Severity = Severity::Critical;

/// A worker that uses less of a CPU waits for something else: more of them are then a matter of storage.
const WORKER_BUSY: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader, workers) = (starved.window, starved.loader, starved.workers);
    let util = analysis.host.cpu_util?;
    if !analysis.room_for_workers()? {
        return None;
    }
    let each = analysis.workers.cpus_each.filter(|cpus| *cpus >= WORKER_BUSY)?;
    let suggested = advice::workers_needed(analysis, loader).filter(|suggested| *suggested > workers)?;
    let usable = analysis.usable_cpus()?;
    let faster_s = window.wall_s() * workers as f64 / suggested as f64;
    let possible_s = window.wall_s() - faster_s.max(window.wall_s() - window.seconds(Phase::Data));
    let (busy, free) = (units::percent(each), units::percent(1.0 - util));
    let candidate = Candidate::new(
        ID,
        severity_of(starved.share),
        message!(
            en: "Too few workers: {workers}, each {busy} busy; {free} of the {usable} usable CPUs is idle",
            zh: "worker 太少：{workers} 个，各 {busy} 忙碌，而 {usable} 个可用 CPU 有 {free} 空闲"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "CPU utilization of a worker", zh: "每个 worker 的 CPU 使用率"),
                each * 100.0,
                "%",
            )
            .against(WORKER_BUSY * 100.0),
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "utilization of the usable CPUs", zh: "可用 CPU 的使用率"),
                util * 100.0,
                "%",
            )
            .against(90.0),
        ),
    )
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Likely, possible_s * 0.5, possible_s)
    .explains(window.seconds(Phase::Data));
    if loader.repeats_per_worker() {
        return Some(advice::refuse_more_workers(candidate, loader));
    }
    Some(
        candidate
            .setting(
                "loader.num_workers",
                Some(workers.to_string()),
                suggested,
                message!(
                    en: "num_workers={suggested}: {usable} CPUs are usable",
                    zh: "num_workers={suggested}：可用 CPU 为 {usable} 个"
                ),
            )
            .code(
                loader.place.as_ref(),
                message!(en: "DataLoader(…, num_workers={suggested})", zh: "DataLoader(…, num_workers={suggested})"),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use serde_json::json;

    fn slow(util: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(16)
            .host(|host| host.cpu_util = Some(util))
            .workers(2, 0.95, 1 << 20)
            .loader(0, json!({"num_workers": 2}))
            .worker_cost(0, 1900.0, 50.0, 100)
    }

    #[test]
    fn fires() {
        let finding = run(check, slow(0.2)).unwrap();
        assert!(
            matches!(&finding.fixes[0], Fix::Setting { to, .. } if to == "6"),
            "{:?}",
            finding.fixes
        );
        assert_eq!(causes(slow(0.2)), [ID]);
    }

    #[test]
    fn an_unsharded_iterable_dataset_must_be_sharded_first() {
        let one = json!({"num_workers": 1, "iterable": true, "sharded": false});
        let finding = run(check, slow(0.2).loader(0, one)).unwrap();
        assert!(
            finding.fixes.iter().any(|fix| matches!(fix, Fix::Refused { .. }))
                && !finding.fixes.iter().any(|fix| matches!(fix, Fix::Setting { .. })),
            "{:?}",
            finding.fixes
        );
        // Its workers were seen to give different samples.
        let shared = json!({"num_workers": 2, "iterable": true, "repeated": 0.0});
        let finding = run(check, slow(0.2).loader(0, shared)).unwrap();
        assert!(matches!(&finding.fixes[0], Fix::Setting { .. }));
    }

    #[test]
    fn quiet() {
        assert!(run(check, slow(0.97)).is_none());
        assert!(run(check, slow(0.2).phase(Phase::Data, 0.02)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
