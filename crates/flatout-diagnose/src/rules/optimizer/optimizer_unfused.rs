//! # optimizer-unfused
//!
//! ## What it detects
//! The optimizer updates parameters one by one, on a GPU that waits for the CPU.
//!
//! ## Why it is slow
//! With `foreach=False` and without `fused=True`, Adam launches about ten small kernels per parameter tensor: thousands of launches
//! per step.
//!
//! ## Example
//! ```python
//! optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
//! ```
//!
//! ## Use instead
//! ```python
//! optimizer = torch.optim.AdamW(model.parameters(), fused=True)
//! ```
//!
//! ## Evidence
//! The optimizer's settings, the number of parameter tensors, and the GPU's busy share.
//!
//! ## Fix
//! Use `fused=True`: one kernel updates many parameters.
//!
//! ## When it is wrong
//! The parameters are on several devices, or have dtypes that the fused kernels do not support.
//!
//! ## References
//! PyTorch's documentation of `fused`. TorchTidy reports the same. A launch costs about 5 µs.
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>
//!
//! ---
//! ## 检测什么
//! 优化器逐个参数更新，而 GPU 在等主机。
//! ## 为什么慢
//! `foreach=False` 且没有 `fused=True` 时，Adam 为每个参数张量下发约十个小 kernel：每步数千次下发。
//! ## 证据
//! 真正生效的优化器设置、参数张量数、GPU 的忙碌占比。
//! ## 怎么改
//! `fused=True`：一个 kernel 更新许多参数。
//! ## 何时不成立
//! 参数分布在多个设备上，或 dtype 不被 fused kernel 支持。
//! ## 参考
//! TorchTidy 指出这一点。一次下发约 5 µs；PyTorch 在 CUDA 上的默认值是 `foreach`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message};

pub const ID: &str = "optimizer-unfused";
pub const WORST: Severity = Severity::Critical;

/// Host time of one launch from Python, dispatch included: 5 µs measured on an H200's host, the rest Python.
const LAUNCH_MS: f64 = 0.006;
/// Kernels of Adam for one parameter tensor, one by one.
const KERNELS: f64 = 12.0;
/// Share of the step from which it is worth a line.
const SHARE: f64 = 0.05;
/// Above this the host's launches are hidden.
const GPU_BUSY: f64 = 0.9;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    if analysis.device() != Device::Cuda || facts.switch("optimizer.fused") == Some(true) {
        return None;
    }
    // `None` is PyTorch's default, which is foreach on CUDA; only an explicit `False` goes one by one.
    if facts.switch("optimizer.foreach") != Some(false) {
        return None;
    }
    let tensors = facts.number("model.tensors")?;
    let class = facts
        .text("optimizer.class")
        .unwrap_or_else(|| "optimizer".into());
    let kernels = if class.contains("Adam") {
        KERNELS
    } else {
        KERNELS / 4.0
    };
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let launches_ms = tensors * kernels * LAUNCH_MS;
    let seconds = (launches_ms / 1e3 * window.steps as f64).min(analysis.dispatch_idle_s()?);
    let share = seconds / window.wall_s();
    if share < SHARE {
        return None;
    }
    let place = facts
        .place("optimizer.fused")
        .or_else(|| facts.place("optimizer.class"));
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "{class} updates {tensors} parameter tensors one by one, about {} launches per step",
                zh: "{class} 逐个更新 {tensors} 个参数 tensor，每步约 {} 次下发",
                tensors * kernels
            ),
        )
        .evidence(Evidence::new(
            message!(en: "parameter tensors", zh: "参数 tensor 数"),
            tensors,
            "",
        ))
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间"),
                    busy * 100.0,
                    "%",
                )
                .against(GPU_BUSY * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(Stretch::Dispatch, Reach::Specific, seconds * 0.3, seconds)
        .setting(
            "optimizer.fused",
            Some("off".into()),
            "on",
            message!(en: "one kernel updates many parameters", zh: "一个 kernel 更新多个参数"),
        )
        .code(
            place.as_ref(),
            message!(en: "{class}(…, fused=True)", zh: "{class}(…, fused=True)"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn stepping(foreach: bool) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.4))
            .fact("amp.dtype", "bf16")
            .fact("optimizer.class", "AdamW")
            .fact("optimizer.foreach", foreach)
            .fact("model.tensors", 100)
    }

    #[test]
    fn fires() {
        assert!(run(check, stepping(false)).is_some());
        assert_eq!(causes(stepping(false))[0], ID);
    }

    #[test]
    fn quiet() {
        assert!(run(check, stepping(true)).is_none());
        assert!(run(check, stepping(false).fact("optimizer.fused", true)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
