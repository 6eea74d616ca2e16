//! # gradients-zeroed
//!
//! ## What it detects
//! Gradients are filled with zeros (`set_to_none=False`) instead of being set to None, in a model where this costs time.
//!
//! ## Why it is slow
//! Every gradient is written once for nothing, and then read back to add to it.
//!
//! ## Example
//! ```python
//! optimizer.zero_grad(set_to_none=False)
//! ```
//!
//! ## Use instead
//! ```python
//! optimizer.zero_grad()
//! ```
//!
//! ## Evidence
//! The setting in effect, the time to fill the gradients (measured on a dozen calls), and the time per step.
//!
//! ## Fix
//! Use `optimizer.zero_grad(set_to_none=True)`, the default since PyTorch 2.0.
//!
//! ## When it is wrong
//! The program reads `.grad` after zeroing and expects zeros.
//!
//! ## References
//! PyTorch's documentation of `Optimizer.zero_grad`. TorchTidy reports the same.
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>
//!
//! ---
//! ## 检测什么
//! 梯度被填零（`set_to_none=False`）而不是丢弃，而对这个模型来说代价可见。
//! ## 为什么慢
//! 每个梯度都白白写一遍，然后再读回来累加。
//! ## 证据
//! 真正生效的设置；十几次调用中测得的填零时间，以及每步的时间。
//! ## 怎么改
//! `optimizer.zero_grad(set_to_none=True)`，PyTorch 2.0 起的默认值。
//! ## 何时不成立
//! 代码在清零后读取 `.grad` 并期望为零。
//! ## 参考
//! PyTorch 文档 `Optimizer.zero_grad`。TorchTidy 同样指出这一点。
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message};
use flatout_record::Phase;

pub const ID: &str = "gradients-zeroed";
pub const WORST: Severity = Severity::Warning;

/// Dropping saves the writing of the zeros, which is measured, and what backward then does to add to them: read both, write the
/// sum, three more passes over the same bytes.
const PASSES: f64 = 4.0;
/// Said from here on, but a warning only from a tenth of the time.
const SHARE: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.facts.switch("zero_grad.set_to_none") != Some(false) {
        return None;
    }
    let filling_ms = analysis.facts.number("zero_grad.ms")?;
    let (stretch, at_most_s) = match (analysis.device(), analysis.device_busy_share()) {
        (Device::Cuda, Some(busy)) => (Stretch::Device, busy * window.wall_s()),
        _ => (Stretch::Dispatch, window.seconds(Phase::Compute)),
    };
    let filling_s = (filling_ms / 1e3 * window.steps as f64).min(at_most_s);
    let seconds = (filling_s * PASSES).min(at_most_s);
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
                en: "Gradients are filled with zeros at each step instead of being set to None",
                zh: "每一步都把梯度填零，而不是直接丢弃"
            ),
        )
        .evidence(analysis.in_window(
            Evidence::new(
                message!(en: "time filling gradients with zeros and adding to them", zh: "填零及随后累加占用的时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ))
        .evidence(analysis.in_run(Evidence::new(
            message!(en: "time filling with zeros, per step", zh: "每步填零耗时"),
            filling_ms,
            "ms",
        )))
        .place(place.as_ref())
        .claims(stretch, Reach::Specific, filling_s, seconds)
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

    fn zeroing(none: bool, filling_ms: f64) -> Build {
        Build::steady(20)
            .fact("zero_grad.set_to_none", none)
            .fact("zero_grad.ms", filling_ms)
            .fact("device", "cpu")
    }

    #[test]
    fn fires() {
        assert!(run(check, zeroing(false, 1.0)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, zeroing(true, 1.0)).is_none());
        assert!(run(check, zeroing(false, 0.001)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
