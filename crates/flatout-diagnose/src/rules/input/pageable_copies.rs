//! # pageable-copies
//!
//! ## What it detects
//! Batches are copied to the GPU out of ordinary, pageable memory, and the copies take a visible share of the time.
//! ## Why it is slow
//! The driver first copies pageable memory into a pinned buffer of its own; the copy is slower and the host waits for it,
//! so it cannot overlap with the step before.
//! ## Evidence
//! Time copying to the device; `pin_memory` as really set; bytes in a batch.
//! ## Fix
//! `pin_memory=True` in the loader and `.to(device, non_blocking=True)`.
//! ## When it is wrong
//! Little memory to pin, or a custom batch type without `pin_memory()`.
//! ## References
//! TraceML: H2D 10% and 20% of a step. PyTorch's guide on pinned memory and `non_blocking`.

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_telemetry::Phase;

pub const ID: &str = "pageable-copies";
pub const WORST: Severity = Severity::Critical;

/// Half of TraceML's first level: below it nothing is said.
const SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let loader = analysis.train_loader();
    let pinned = analysis.facts.switch("input.pinned").or(loader.and_then(|loader| loader.pin_memory));
    let share = window.share(Phase::Transfer);
    if analysis.device() != Device::Cuda || pinned != Some(false) || share < SHARE {
        return None;
    }
    let shown = units::percent(share);
    let seconds = window.seconds(Phase::Transfer);
    let place = loader.and_then(|loader| loader.place.as_ref());
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Copies from pageable memory take {shown} of the time",
            zh: "从可分页内存拷贝到 GPU 占 {shown} 的时间"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Transfer, SHARE))
    .place(place)
    .claims(Stretch::Transfer, Reach::Specific, seconds * 0.4, seconds)
    .setting(
        "loader.pin_memory",
        Some("false".into()),
        "true",
        message!(en: "pin_memory=True", zh: "pin_memory=True"),
    )
    .code(
        place,
        message!(
            en: "Copy with .to(device, non_blocking=True), so that it overlaps with the step before",
            zh: "用 .to(device, non_blocking=True) 拷贝，使其与上一步重叠"
        ),
    );
    if let Some(bytes) = analysis.facts.number("input.bytes") {
        let rate = bytes * window.steps as f64 / seconds.max(1e-9) / 1e9;
        let what = message!(en: "speed of the copies", zh: "拷贝速度");
        candidate = candidate.evidence(analysis.in_window(Evidence::new(what, rate, "GB/s")));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn copying(pinned: bool) -> Build {
        Build::steady(20)
            .phase(Phase::Transfer, 0.3)
            .phase(Phase::Compute, 0.7)
            .gpu(|gpu| gpu.util = Some(0.65))
            .fact("input.bytes", 1 << 24)
            .loader(0, json!({"num_workers": 2, "pin_memory": pinned}))
    }

    #[test]
    fn fires() {
        assert!(run(check, copying(false)).is_some());
        assert_eq!(causes(copying(false).fact("amp.dtype", "bf16")), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, copying(true)).is_none());
        assert!(run(check, copying(false).phase(Phase::Transfer, 0.01)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
