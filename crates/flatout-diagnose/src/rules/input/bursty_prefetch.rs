//! # bursty-prefetch
//!
//! ## What it detects
//! The workers are fast enough on average, but a few very slow batches stall the steps.
//!
//! ## Why it is slow
//! Batches are delivered in order. While one worker is busy with a slow batch, finished ones wait for it, and once the short queue is
//! full the other workers stop.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=4)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=4, prefetch_factor=8)
//! ```
//!
//! ## Evidence
//! Most of the waiting happens in a few long waits, each many times the work of an average batch, while the average work of the
//! workers would fit into the time that the steps leave.
//!
//! ## Fix
//! Use a longer queue (`prefetch_factor`) to ride out slow batches, and even out the cost of the samples.
//!
//! ## When it is wrong
//! The long waits occur only at the start of an epoch: they are the startup of the workers.
//!
//! ## References
//! gpuprof reports starved prefetching when 20% of the steps wait for more than 30 ms.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! worker 的平均速度够用，但少数特别慢的 batch 让训练停顿。
//! ## 为什么慢
//! batch 按顺序交付。某个 worker 忙于一个慢 batch 时，已完成的 batch 只能排在后面等；短队列一满，其他 worker 也停下来。
//! ## 证据
//! 等待时间大多集中在少数几次，每次都是平均 batch 耗时的许多倍；而 worker 的平均工作量放得进训练留出的时间。
//! ## 怎么改
//! 加长队列（`prefetch_factor`），使其撑过一个慢 batch；让各样本的成本更均匀。
//! ## 何时不成立
//! 只在 epoch 开头才有的长等待：那是 worker 的启动时间。
//! ## 参考
//! gpuprof：20% 的步等待超过 30 ms 即视为预取不足。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "bursty-prefetch";
pub const WORST: Severity = Severity::Critical;

/// A long wait is this many times the average work of a batch: the batch itself was that much slower.
const LONG: f64 = 2.0;
/// A few: one step in ten at most.
const FEW: f64 = 0.1;
/// The part of the waiting that must be in them, before they and not the rest are the matter.
const MOST: f64 = 0.6;
/// PyTorch's own default.
const PREFETCH: u64 = 2;
/// A queue that lasts several times longer without filling the shared memory.
const LONGER: u64 = 8;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader) = (starved.window, starved.loader);
    if starved.overloaded()? {
        return None;
    }
    let long_ms = loader.prepare_ms()? * LONG;
    let waits = window.phase_hist.get(&Phase::Data)?;
    let (mut times, mut long_s, mut all_s) = (0u64, 0.0, 0.0);
    for (wait_ms, count) in waits.bars_ms() {
        let seconds = wait_ms * count as f64 / 1e3;
        all_s += seconds;
        if wait_ms >= long_ms {
            times += count;
            long_s += seconds;
        }
    }
    // Waits at the start of an epoch are another rule's.
    let (_, restart_s) = analysis.restart_s(loader.start_s);
    let burst_s = (long_s - restart_s).min(window.seconds(Phase::Data));
    let share = burst_s / window.wall_s();
    let few = times as f64 <= window.steps as f64 * FEW;
    if times == 0 || !few || burst_s < all_s * MOST || share < WARNING_SHARE {
        return None;
    }
    let (steps, each) = (window.steps, units::duration(long_s / times as f64));
    let now = loader.prefetch_factor.unwrap_or(PREFETCH);
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Batches arrive in bursts: {times} of {steps} steps waited {each} for a slow batch",
            zh: "batch 成批到达：{steps} 步中有 {times} 步各等了 {each}，等一个很慢的 batch"
        ),
    )
    .confidence(Confidence::Medium)
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(analysis.in_window(
        Evidence::new(
            message!(en: "time in waits longer than twice the work of a batch", zh: "等待中超过两倍 batch 工作量的部分"),
            burst_s / all_s * 100.0,
            "%",
        )
        .against(MOST * 100.0),
    ))
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Likely, 0.0, burst_s)
    .code(
        loader.place.as_ref(),
        message!(
            en: "Even out the cost of samples: find those far above the average and preprocess them once",
            zh: "让样本成本更均匀：找出成本远高于平均的样本，事先处理好"
        ),
    );
    if now >= LONGER {
        return Some(candidate);
    }
    Some(candidate.setting(
        "loader.prefetch_factor",
        Some(now.to_string()),
        LONGER,
        message!(
            en: "prefetch_factor={LONGER}: a longer queue rides out slow batches",
            zh: "prefetch_factor={LONGER}：更长的队列可以撑过慢的 batch"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::histogram::Histogram;
    use flatout_record::RunData;
    use serde_json::json;

    fn waits(long_ms: f64) -> RunData {
        let mut data = Build::steady(20)
            .phase(Phase::Data, 0.3)
            .phase(Phase::Compute, 0.7)
            .cpus(8)
            .loader(0, json!({"num_workers": 4}))
            .worker_cost(0, 900.0, 100.0, 100)
            .done();
        for tick in &mut data.steps {
            let mut hist = Histogram::default();
            hist.add_count(Histogram::bucket_of(0.1e6), 96);
            hist.add_count(Histogram::bucket_of(long_ms * 1e6), 4);
            tick.phases.get_mut(&Phase::Data).unwrap().hist = hist;
        }
        data
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&waits(70.0))).is_some());
        let diagnosis = crate::diagnose(&waits(70.0));
        assert_eq!(diagnosis.findings[0].rule, ID);
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&waits(5.0))).is_none());
        assert!(run(check, Build::steady(20)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
