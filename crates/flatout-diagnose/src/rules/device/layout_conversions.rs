//! # layout-conversions
//!
//! ## What it detects
//! cuDNN converts tensors between NCHW and NHWC around convolutions, and the conversions take a noticeable part of the step.
//!
//! ## Why it is slow
//! Tensor cores need the channels in the last dimension. A tensor in PyTorch's default layout is transposed before a convolution and
//! back after it, which reads and writes the whole tensor each time.
//!
//! ## Example
//! ```python
//! model = model.cuda()
//! for images, labels in loader:
//!     images = images.cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! model = model.cuda().to(memory_format=torch.channels_last)
//! for images, labels in loader:
//!     images = images.cuda().to(memory_format=torch.channels_last)
//! ```
//!
//! ## Evidence
//! The time in `nchwToNhwc` and `nhwcToNchw` kernels, from GPU traces.
//!
//! ## Fix
//! Use `model = model.to(memory_format=torch.channels_last)` and convert each batch of images the same way. No conversion is then
//! needed.
//!
//! ## When it is wrong
//! The model contains operators that require the default layout, such as some custom kernels.
//!
//! ## References
//! PyTorch's channels-last tutorial: 22% faster for ResNet-50 with AMP. NVIDIA's guide on convolution layouts.
//! <https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html>
//!
//! ---
//! ## 检测什么
//! cuDNN 在卷积前后于 NCHW 与 NHWC 之间转换张量，占了一步的一部分时间。
//! ## 为什么慢
//! Tensor Core 需要通道在最后。PyTorch 默认布局的张量在卷积前要转置、之后再转回，每次都要读写全部内存。
//! ## 证据
//! 跟踪得到的 `nchwToNhwc` 与 `nhwcToNchw` kernel 的时间。
//! ## 怎么改
//! `model = model.to(memory_format=torch.channels_last)`，每个图像 batch 也同样转换：之后就不再需要转换。
//! ## 何时不成立
//! 模型里有需要默认布局的算子：一些自定义 kernel 同样会转换。
//! ## 参考
//! PyTorch 的 channels last 教程：ResNet-50 加 AMP 快 22%。NVIDIA 关于卷积布局的指南。
//! <https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "layout-conversions";
pub const WORST: Severity = Severity::Critical;

/// PyTorch's own plugin speaks at 5%.
const SHARE: f64 = 0.05;
/// Norms and poolings between the convolutions gain as well; some conversions stay at the model's borders.
const GOES: f64 = 1.0;
const SURELY: f64 = 0.6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let kernels = analysis.kernels.as_ref()?;
    let last = analysis.facts.text("model.memory_format").as_deref() == Some("channels_last");
    let share = kernels.share(&[KernelKind::Layout]);
    if analysis.device() != Device::Cuda || last || share < SHARE {
        return None;
    }
    let shown = units::percent(share);
    let place = kernels
        .line_of(&[KernelKind::Layout])
        .map(|line| line.place())
        .or_else(|| analysis.mention(&[".to(device)", ".cuda()"]));
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Converting convolutions between NCHW and NHWC takes {shown} of the time",
                zh: "卷积在 NCHW 与 NHWC 之间转换布局：占 {shown} 的时间"
            ),
        )
        .confidence(Confidence::High)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in layout conversions", zh: "布局转换的时间"),
                    share * 100.0,
                    "%",
                )
                .against(SHARE * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(
            Stretch::Device,
            Reach::Measured,
            share * SURELY * window.wall_s(),
            share * GOES * window.wall_s(),
        )
        .code(
            place.as_ref(),
            message!(
                en: "Use model.to(memory_format=torch.channels_last) and images.to(device, \
                memory_format=torch.channels_last)",
                zh: "model.to(memory_format=torch.channels_last)，以及 images.to(device, memory_format=torch.channels_last)"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn converting(ms: f64, format: &str) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.95))
            .fact("model.memory_format", format)
            .kernels(&[(KernelKind::Layout, ms), (KernelKind::TensorCore, 700.0)])
    }

    #[test]
    fn fires() {
        let finding = run(check, converting(180.0, "contiguous")).unwrap();
        assert!((finding.evidence[0].value - 18.0).abs() < 1e-6);
    }

    #[test]
    fn quiet() {
        assert!(run(check, converting(180.0, "channels_last")).is_none());
        assert!(run(check, converting(20.0, "contiguous")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
