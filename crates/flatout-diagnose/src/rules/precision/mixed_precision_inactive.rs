//! # mixed-precision-inactive
//!
//! ## What it detects
//! Mixed precision was requested (an `autocast` with `enabled=False`, a gradient scaler), but no step ran with it.
//!
//! ## Why it is slow
//! The program runs in FP32 while its author believes otherwise, often because of a configuration value that the code never matches.
//!
//! ## Example
//! ```python
//! with torch.autocast("cuda", enabled=config["amp"] == "bf16"):  # amp: true
//!     loss = criterion(model(x), y)
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16, enabled=config["amp"]):
//!     loss = criterion(model(x), y)
//! ```
//!
//! ## Evidence
//! What was requested, where, and what the steps actually ran with.
//!
//! ## Fix
//! Enter `autocast`. Check the condition on the reported line.
//!
//! ## When it is wrong
//! It was turned off on purpose for this run.
//!
//! ## References
//! Seen in practice: `amp: true` in the configuration, `== 'bf16'` in the code, 20 to 40% of the speed lost.
//! <https://docs.pytorch.org/docs/stable/amp.html>
//!
//! ---
//! ## 检测什么
//! 要求了混合精度（`enabled=False` 的 `autocast`、梯度缩放器），但没有任何一步真正使用它。
//! ## 为什么慢
//! 程序以 FP32 运行，而使用者以为不是：代码从未匹配到配置里的那个值。
//! ## 证据
//! 要求了什么、在哪里，以及各步真正使用的精度。
//! ## 怎么改
//! 真正进入 `autocast`。检查所示行的条件。
//! ## 何时不成立
//! 本次运行有意关闭。
//! ## 参考
//! 实际案例：配置里是 `amp: true`，代码里是 `== 'bf16'`，损失 20% 到 40%。
//! <https://docs.pytorch.org/docs/stable/amp.html>

use super::mixed_precision_off::traced;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch};
use flatout_core::{Evidence, Severity, message};

pub const ID: &str = "mixed-precision-inactive";
pub const WORST: Severity = Severity::Warning;

/// What of the busy time may go where the GPU was not traced: twice the speed on all of it.
const GOES: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let asked = analysis.facts.switch("amp.asked") == Some(true);
    if analysis.device() != Device::Cuda
        || !asked
        || analysis.facts.text("amp.dtype").as_deref() != Some("off")
    {
        return None;
    }
    // A model whose own weights are half as wide needs no autocast.
    if analysis
        .facts
        .text("model.dtype")
        .is_some_and(|dtype| !dtype.contains("float32"))
    {
        return None;
    }
    let place = analysis.facts.place("amp.asked");
    let busy = analysis.device_busy_share();
    let mut candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "Mixed precision was requested, but the steps run in FP32",
            zh: "程序要求了混合精度，但训练步骤实际运行在 FP32"
        ),
    )
    .detail(message!(
        en: "The program creates a gradient scaler or an autocast with enabled=False, but no step enters \
        autocast.",
        zh: "存在 enabled=False 的 autocast 或 GradScaler；但没有任何一步真正进入 autocast。"
    ))
    .evidence(analysis.in_window(
        Evidence::new(message!(en: "steps under autocast", zh: "在 autocast 下运行的步数"), 0.0, "")
            .against(window.steps as f64),
    ))
    .place(place.as_ref())
    .setting(
        "amp",
        Some("off".into()),
        "bf16",
        message!(en: "Enter torch.autocast(\"cuda\", dtype=torch.bfloat16)", zh: "真正启用 torch.autocast(\"cuda\", dtype=torch.bfloat16)"),
    )
    .code(
        place.as_ref(),
        message!(
            en: "Check the condition that enables it: the value it compares with may never occur",
            zh: "检查控制它的条件：与之比较的值可能永远不会出现"
        ),
    );
    if let Some(busy) = busy {
        let (certain, goes) = analysis.kernels.as_ref().map_or((0.0, busy * GOES), traced);
        let possible_s = goes * window.wall_s();
        if goes >= crate::candidate::WARNING_SHARE {
            candidate = candidate.claims(
                Stretch::Device,
                Reach::Specific,
                certain * window.wall_s(),
                possible_s,
            );
            candidate = candidate.explains(busy * window.wall_s());
        }
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn asked(dtype: &str) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.9))
            .fact("amp.asked", true)
            .fact("amp.dtype", dtype)
    }

    #[test]
    fn fires() {
        assert!(run(check, asked("off").fact("model.dtype", "float32")).is_some());
        assert_eq!(causes(asked("off")), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, asked("fp16")).is_none());
        assert!(run(check, asked("off").fact("model.dtype", "bfloat16")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
