//! # bursty-prefetch
//!
//! ## What it detects
//! The workers could deliver on average, but a few very slow batches stall the steps.
//! ## Why it is slow
//! Batches are handed over in order. While one worker is busy with a slow one, finished ones wait behind it and, once the
//! short queue is full, the other workers stop.
//! ## Evidence
//! The middle wait is short and the longest waits are many times an average batch; the average work of the workers would
//! fit into the time the steps leave.
//! ## Fix
//! A longer queue (`prefetch_factor`), so that it lasts through a slow batch; even out the cost of the items.
//! ## When it is wrong
//! Long waits at the beginning of an epoch only: then it is the start of the workers.
//! ## References
//! gpuprof calls prefetch starved when 20% of the steps wait for more than 30 ms.

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_telemetry::Phase;

pub const ID: &str = "bursty-prefetch";
pub const WORST: Severity = Severity::Critical;

/// The workers' average work must fit into this part of the steps' time.
const LOAD: f64 = 0.8;
/// A long wait is this many times the average work of a batch.
const LONG: f64 = 2.0;
/// PyTorch's own default.
const PREFETCH: u64 = 2;
/// A queue that lasts several times longer without filling the shared memory.
const LONGER: u64 = 8;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader) = (starved.window, starved.loader);
    starved.load().filter(|load| *load < LOAD)?;
    let average_ms = loader.prepare_ms()?;
    let waits = window.phase_hist.get(&Phase::Data)?;
    let (middle, long) = (waits.quantile_ms(0.5)?, waits.quantile_ms(0.99)?);
    // Waits at the start of an epoch are another rule's.
    let burst_s = window.seconds(Phase::Data) - loader.start_s;
    let share = burst_s / window.wall_s();
    if long < average_ms * LONG || middle > window.ms_per_step(Phase::Data) || share < WARNING_SHARE {
        return None;
    }
    let (usual, longest) = (units::duration(middle / 1e3), units::duration(long / 1e3));
    let now = loader.prefetch_factor.unwrap_or(PREFETCH);
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Batches come in bursts: half of them within {usual}, one in a hundred after {longest}",
            zh: "batch 成批到达：一半在 {usual} 内，百分之一要等 {longest}"
        ),
    )
    .confidence(Confidence::Medium)
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(analysis.in_window(
        Evidence::new(message!(en: "the longest 1% of the waits", zh: "最长的 1% 等待"), long, "ms")
            .against(average_ms * LONG),
    ))
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Likely, 0.0, burst_s)
    .code(
        loader.place.as_ref(),
        message!(
            en: "Even out the items: find those that cost many times the average, and prepare them once beforehand",
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
            en: "prefetch_factor={LONGER}: a longer queue lasts through a slow batch",
            zh: "prefetch_factor={LONGER}：更长的队列可以撑过慢的 batch"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::histogram::Histogram;
    use flatout_telemetry::record::RunData;
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
