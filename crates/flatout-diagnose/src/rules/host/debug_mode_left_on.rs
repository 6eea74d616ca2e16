//! # debug-mode-left-on
//!
//! ## What it detects
//! Anomaly detection (`torch.autograd.set_detect_anomaly`) or blocking kernel launches (`CUDA_LAUNCH_BLOCKING=1`) are enabled during
//! training.
//!
//! ## Why it is slow
//! Anomaly detection stores the Python stack of every operator and checks every gradient for NaN. Blocking launches make the CPU wait
//! for each kernel.
//!
//! ## Example
//! ```python
//! torch.autograd.set_detect_anomaly(True)
//! ```
//!
//! ## Use instead
//! ```python
//! torch.autograd.set_detect_anomaly(False)
//! ```
//!
//! ## Evidence
//! The settings themselves, and the time spent formatting stacks.
//!
//! ## Fix
//! Turn it off. If a NaN appears, turn it on for a few steps only.
//!
//! ## When it is wrong
//! The run is meant to locate a NaN.
//!
//! ## References
//! PyTorch's documentation: anomaly detection is for debugging only.
//! <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>
//!
//! ---
//! ## 检测什么
//! 训练时开启了异常检测（`torch.autograd.set_detect_anomaly`）或阻塞式下发（`CUDA_LAUNCH_BLOCKING=1`）。
//! ## 为什么慢
//! 异常检测会保存每个算子的 Python 调用栈，并检查每个梯度是否为 NaN；阻塞式下发让主机等待每个 kernel。
//! ## 证据
//! 这些开关本身，以及格式化调用栈的时间。
//! ## 怎么改
//! 关掉它，或只在出现 NaN 时对少数几步开启。
//! ## 何时不成立
//! 正在查找 NaN 的运行。
//! ## 参考
//! PyTorch 文档：异常检测只用于调试。
//! <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>

use crate::account::Span;
use crate::account::center::in_backward;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use crate::lines::keeps_stacks;
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "debug-mode-left-on";
pub const WORST: Severity = Severity::Critical;

/// The part of backward that checking every gradient takes, at most; measured 30 to 50% on small models.
const OF_BACKWARD: f64 = 0.5;
/// Without samples: what anomaly detection costs at least and at most.
const LEAST: f64 = 0.1;
const MOST: f64 = 0.6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let anomaly = analysis.facts.switch("debug.anomaly") == Some(true);
    let blocking = analysis.facts.switch("debug.launch_blocking") == Some(true);
    if !anomaly && !blocking {
        return None;
    }
    let wall_s = window.wall_s();
    let (certain_s, possible_s) = match &analysis.account {
        Some(account) if anomaly => {
            let sum = |keep: &dyn Fn(&Span) -> bool| {
                let kept = account.spans.iter().filter(|span| keep(span));
                kept.map(|span| span.seconds).sum::<f64>()
            };
            let formatting = sum(&keeps_stacks);
            let backward = sum(&|span| in_backward(span) && !keeps_stacks(span));
            (formatting, formatting + backward * OF_BACKWARD)
        }
        _ => (wall_s * LEAST, wall_s * MOST),
    };
    let share = possible_s / wall_s;
    let shown = units::percent(share);
    let place = analysis.mention(&["detect_anomaly", "CUDA_LAUNCH_BLOCKING"]);
    let title = if anomaly {
        message!(
            en: "Anomaly detection is on: up to {shown} of the time goes to stack traces and NaN checks",
            zh: "开启了异常检测：至多 {shown} 的时间用于调用栈和 NaN 检查"
        )
    } else {
        message!(
            en: "CUDA_LAUNCH_BLOCKING is set: the CPU waits for every kernel",
            zh: "设置了 CUDA_LAUNCH_BLOCKING：CPU 等待每个 kernel"
        )
    };
    Some(
        Candidate::new(ID, severity_of(share), title)
            .evidence(analysis.in_window(Evidence::new(
                message!(en: "time it can cost", zh: "可能的耗时"),
                share * 100.0,
                "%",
            )))
            .place(place.as_ref())
            .claims(Stretch::Dispatch, Reach::Measured, certain_s, possible_s)
            .or_in(Stretch::Other)
            .code(
                place.as_ref(),
                message!(
                    en: "Turn it off for training; turn it on only for a few steps when a NaN appears",
                    zh: "训练时关掉；出现 NaN 时只对少数几步开启"
                ),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    #[test]
    fn fires() {
        let finding = run(check, Build::steady(20).fact("debug.anomaly", true)).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, Build::steady(20).fact("debug.anomaly", false)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
