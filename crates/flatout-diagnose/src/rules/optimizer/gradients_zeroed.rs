//! # gradients-zeroed
//!
//! ## What it detects
//! Gradients are filled with zeros (`set_to_none=False`) instead of dropped, in a model where that costs something.
//! ## Why it is slow
//! Every gradient is written once for nothing and then read back to be added to.
//! ## Evidence
//! The setting in force; the bytes of the gradients against the step's time at the memory's speed.
//! ## Fix
//! `optimizer.zero_grad(set_to_none=True)`, PyTorch's default since 2.0.
//! ## When it is wrong
//! Code that reads `.grad` after zeroing and expects zeros.
//! ## References
//! TorchTidy names it; the users' second document estimates 5 to 10%.

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message};
use flatout_telemetry::Phase;

pub const ID: &str = "gradients-zeroed";
pub const WORST: Severity = Severity::Warning;

/// Write the zeros, read them, write the sum: three passes that dropping saves, at speeds that are not too kind.
const PASSES: f64 = 3.0;
const GPU_BYTES_S: f64 = 1e12;
const CPU_BYTES_S: f64 = 1e10;
/// Said from here on, but a warning only from a tenth of the time.
const SHARE: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.facts.switch("zero_grad.set_to_none") != Some(false) {
        return None;
    }
    let bytes = analysis.facts.number("model.bytes")?;
    let (speed, stretch) = match analysis.device() {
        Device::Cuda => (GPU_BYTES_S, Stretch::Device),
        _ => (CPU_BYTES_S, Stretch::Dispatch),
    };
    let seconds = (bytes * PASSES / speed * window.steps as f64).min(window.seconds(Phase::Compute));
    let share = seconds / window.wall_s();
    if share < SHARE {
        return None;
    }
    let place = analysis.facts.place("zero_grad.set_to_none");
    Some(
        Candidate::new(
            ID,
            severity_of(share).min(WORST),
            message!(
                en: "Gradients are filled with zeros each step instead of dropped",
                zh: "每一步都把梯度填零，而不是直接丢弃"
            ),
        )
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "estimated share of the time", zh: "估计占用的时间"), share * 100.0, "%")
                .against(SHARE * 100.0),
        ))
        .place(place.as_ref())
        .claims(stretch, Reach::Specific, seconds * 0.3, seconds)
        .setting(
            "zero_grad.set_to_none",
            Some("false".into()),
            "true",
            message!(
                en: "optimizer.zero_grad(set_to_none=True)",
                zh: "optimizer.zero_grad(set_to_none=True)"
            ),
        )
        .code(
            place.as_ref(),
            message!(
                en: "Leave set_to_none at its default, True",
                zh: "让 set_to_none 保持默认值 True"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn zeroing(none: bool, megabytes: u64) -> Build {
        Build::steady(20).fact("zero_grad.set_to_none", none).fact("model.bytes", megabytes << 20).fact("device", "cpu")
    }

    #[test]
    fn fires() {
        assert!(run(check, zeroing(false, 10)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, zeroing(true, 10)).is_none());
        assert!(run(check, zeroing(false, 0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
