//! # tf32-off
//!
//! ## What it detects
//! The program multiplies matrices in FP32 without TF32, on a busy GPU that supports TF32.
//!
//! ## Why it is slow
//! With TF32, tensor cores multiply FP32 matrices several times faster, with a shorter mantissa. PyTorch leaves it off for matrix
//! multiplication by default.
//!
//! ## Example
//! ```python
//! model = Model().cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! torch.set_float32_matmul_precision("high")
//! model = Model().cuda()
//! ```
//!
//! ## Evidence
//! The time in FP32 matmul kernels if the GPU was traced; the matmul precision in effect without mixed precision; the GPU's busy
//! share.
//!
//! ## Fix
//! Call `torch.set_float32_matmul_precision("high")`.
//!
//! ## When it is wrong
//! The computation needs the full FP32 mantissa. Under mixed precision it hardly matters, and the rule does not fire.
//!
//! ## References
//! PyTorch's notes on TF32. TorchTidy and alloc report the same.
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html>
//!
//! ---
//! ## 检测什么
//! GPU 支持 TF32 且很忙，但 FP32 矩阵乘法没有使用 TF32。
//! ## 为什么慢
//! TF32 让 Tensor Core 以较短的尾数做 FP32 乘法，快好几倍；PyTorch 默认不对矩阵乘法启用。
//! ## 证据
//! FP32 matmul kernel 的时间（跟踪到 GPU 时）；真正生效的矩阵乘法精度、没有混合精度、GPU 的忙碌占比。
//! ## 怎么改
//! `torch.set_float32_matmul_precision("high")`。
//! ## 何时不成立
//! 需要完整 FP32 尾数的工作。使用混合精度时影响很小，本规则不会报告。
//! ## 参考
//! TorchTidy 和 alloc 也指出这一点。H200 上 batch 512 的 LSTM：FP32 与 TF32 的对比见本项目的基线。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "tf32-off";
pub const WORST: Severity = Severity::Critical;

/// The GPU must be what limits.
const GPU_BUSY: f64 = 0.7;
/// TF32 begins with Ampere.
const CAPABILITY: u32 = 8;
/// What of the busy time may go, with matrix products being most but not all of it.
const GOES: f64 = 0.5;
/// Of the traced time in FP32 matmul kernels: TF32 is eight times as fast on an A100 and an H100 by the vendor's figures, less where
/// matrices are small or memory is the limit. Half of it surely goes.
const FASTER: f64 = 0.85;
const SURELY: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    let off = match facts.switch("tf32.matmul") {
        Some(on) => !on,
        None => facts.text("matmul.precision").as_deref() == Some("highest"),
    };
    let mixed = facts.text("amp.dtype").is_some_and(|dtype| dtype != "off");
    let other_dtype = facts
        .text("model.dtype")
        .is_some_and(|dtype| !dtype.contains("float32"));
    // Convolutions have a switch of their own, which is on unless someone turned it off.
    let only_convolutions =
        facts.switch("model.has_conv") == Some(true) && facts.switch("tf32.cudnn") != Some(false);
    if analysis.device() != Device::Cuda || !off || mixed || other_dtype || only_convolutions {
        return None;
    }
    analysis
        .busiest_gpu()?
        .info
        .compute_capability
        .filter(|(major, _)| *major >= CAPABILITY)?;
    let busy = analysis.device_busy_share().filter(|busy| *busy >= GPU_BUSY)?;
    let matmul = analysis
        .kernels
        .as_ref()
        .map(|kernels| kernels.share(&[KernelKind::MatrixFp32]));
    // Traced, it is known how much there is to gain.
    if matmul.is_some_and(|share| share * FASTER < WARNING_SHARE) {
        return None;
    }
    let goes = matmul.map_or(busy * GOES, |share| share * FASTER);
    let title = match matmul.map(units::percent) {
        Some(shown) => message!(
            en: "FP32 matmul without TF32 takes {shown} of the time",
            zh: "未启用 TF32 的 FP32 矩阵乘法占 {shown} 的时间"
        ),
        None => message!(
            en: "FP32 matmul runs without TF32 and keeps the GPU busy",
            zh: "FP32 矩阵乘法没有启用 TF32，而 GPU 正忙于此"
        ),
    };
    let line = analysis
        .kernels
        .as_ref()
        .and_then(|kernels| kernels.line_of(&[KernelKind::MatrixFp32]))
        .map(|line| line.place());
    let measured = matmul.map(|share| {
        let what = message!(en: "time in FP32 matmul kernels", zh: "FP32 matmul kernel 的时间");
        analysis.in_window(Evidence::new(what, share * 100.0, "%"))
    });
    let candidate = Candidate::new(ID, severity_of(goes), title).confidence(if matmul.is_some() {
        Confidence::High
    } else {
        Confidence::Medium
    });
    let candidate = measured.into_iter().fold(candidate, Candidate::evidence);
    Some(
        candidate
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
            .place(facts.place("matmul.precision").or(line).as_ref())
            .claims(
                Stretch::Device,
                Reach::Specific,
                matmul.map_or(0.0, |share| share * SURELY * window.wall_s()),
                goes * window.wall_s(),
            )
            // All of the arithmetic: mixed precision would speed up the same products, not others.
            .explains(busy * window.wall_s())
            .setting(
                "tf32",
                Some("off".into()),
                "on",
                message!(
                    en: "torch.set_float32_matmul_precision(\"high\") at the start of the program",
                    zh: "在程序开头加 torch.set_float32_matmul_precision(\"high\")"
                ),
            )
            .code(
                facts.place("matmul.precision").as_ref(),
                message!(
                    en: "Call torch.set_float32_matmul_precision(\"high\") once, before building the model",
                    zh: "在构建模型之前调用一次 torch.set_float32_matmul_precision(\"high\")"
                ),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn products(tf32: bool) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.98))
            .fact("tf32.matmul", tf32)
    }

    #[test]
    fn fires() {
        assert!(run(check, products(false)).is_some());
        assert_eq!(causes(products(false)), [ID]);
    }

    #[test]
    fn the_gain_is_the_traced_time() {
        let traced = |ms: f64| {
            products(false).kernels(&[
                (KernelKind::MatrixFp32, ms),
                (KernelKind::Elementwise, 950.0 - ms),
            ])
        };
        let finding = run(check, traced(500.0)).unwrap();
        assert_eq!(finding.confidence, Confidence::High);
        assert!((finding.evidence[0].value - 50.0).abs() < 1e-6);
        let diagnosis = crate::diagnose(&traced(500.0).done());
        let gain = diagnosis.findings[0].gain.unwrap();
        assert!((gain.high - 1.0 / (1.0 - 0.5 * FASTER)).abs() < 0.02, "{gain:?}");
        // Busy, but hardly with matmul.
        assert!(run(check, traced(50.0)).is_none());
    }

    #[test]
    fn mixed_precision_promises_nothing_on_top() {
        let diagnosis = crate::diagnose(&products(false).fact("amp.dtype", "off").done());
        let gains: f64 = diagnosis
            .findings
            .iter()
            .filter_map(|f| f.gain)
            .map(|gain| 1.0 - 1.0 / gain.high)
            .sum();
        assert!(gains <= 0.98 * GOES + 1e-9, "{gains} of the time would go");
        let other = diagnosis
            .findings
            .iter()
            .find(|f| f.rule == "mixed-precision-off");
        assert!(other.is_some_and(|f| f.kind == flatout_core::Kind::Symptom && f.gain.is_none()));
    }

    #[test]
    fn quiet() {
        assert!(run(check, products(true)).is_none());
        assert!(run(check, products(false).fact("amp.dtype", "bf16")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
