//! # autotuning-again
//!
//! ## What it detects
//! `torch.backends.cudnn.benchmark` is on, and the shape of the input changes from batch to batch.
//!
//! ## Why it is slow
//! With benchmark mode on, cuDNN times its algorithms for each new input shape of a convolution and keeps the fastest. If shapes keep
//! changing, it repeats this search again and again while the GPU waits.
//!
//! ## Example
//! ```python
//! torch.backends.cudnn.benchmark = True
//! for image in images:  # 512x384, 640x480, 500x375, …
//!     model(image[None].cuda())
//! ```
//!
//! ## Use instead
//! ```python
//! torch.backends.cudnn.benchmark = True
//! for image in images:
//!     image = resize(image, (512, 512))
//!     model(image[None].cuda())
//! ```
//!
//! ## Evidence
//! The setting, and the number of different input shapes in the first eight batches (the batch size does not count).
//!
//! ## Fix
//! Crop or pad inputs to a few sizes, or set `torch.backends.cudnn.benchmark = False`.
//!
//! ## When it is wrong
//! The inputs have only a few shapes that recur: each is tuned once.
//!
//! ## References
//! PyTorch's performance tuning guide: enable benchmark mode if input sizes do not vary.
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 开启了 `torch.backends.cudnn.benchmark`，而输入形状每个 batch 都在变。
//! ## 为什么慢
//! 开启后，cuDNN 对卷积的每种新形状都要试一遍各算法并保留最快的。形状一直在变，就要一试再试，GPU 在等待。
//! ## 证据
//! 该开关，以及最初八个 batch 中不同形状的数量（不计 batch 大小）。
//! ## 怎么改
//! 裁剪或填充到少数几种尺寸，或 `torch.backends.cudnn.benchmark = False`。
//! ## 何时不成立
//! 少数几种形状反复出现：每种只试一次。
//! ## 参考
//! PyTorch 性能调优指南：仅在输入尺寸不变时开启。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message};

pub const ID: &str = "autotuning-again";
pub const WORST: Severity = Severity::Critical;

/// Of eight batches.
const SHAPES: f64 = 4.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    let on = facts.switch("cudnn.benchmark") == Some(true) && facts.switch("model.has_conv") == Some(true);
    if analysis.device() != Device::Cuda || !on {
        return None;
    }
    let shapes = analysis
        .of_the_input("input.shapes")
        .and_then(|fact| fact.value.as_f64())
        .filter(|shapes| *shapes >= SHAPES)?;
    let idle_s = analysis.dispatch_idle_s()?;
    let share = idle_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let place = analysis.mention(&["cudnn.benchmark"]);
    let shown = shapes.round();
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "cuDNN re-tunes for each new input shape: {shown} shapes in 8 batches",
                zh: "cuDNN 对每种新形状都重新试算法：8 个 batch 中有 {shown} 种形状"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_run(
                Evidence::new(message!(en: "input shapes", zh: "输入形状"), shapes, "").against(SHAPES),
            ),
        )
        .place(place.as_ref())
        .claims(Stretch::Dispatch, Reach::Specific, 0.0, idle_s)
        .code(
            place.as_ref(),
            message!(
                en: "Set torch.backends.cudnn.benchmark = False, or crop and pad inputs to a few sizes",
                zh: "torch.backends.cudnn.benchmark = False，或把输入裁剪、填充到少数几种尺寸"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn shapes(count: u64, benchmark: bool) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.3))
            .fact("cudnn.benchmark", benchmark)
            .fact("model.has_conv", true)
            .fact("input.shapes", count)
    }

    #[test]
    fn fires() {
        assert!(run(check, shapes(8, true)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, shapes(1, true)).is_none());
        assert!(run(check, shapes(8, false)).is_none());
        assert!(run(check, shapes(8, true).gpu(|gpu| gpu.util = Some(0.97))).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
