//! # mixed-precision-off
//!
//! ## What it detects
//! A GPU with tensor cores computes in FP32, and this arithmetic takes most of the time.
//!
//! ## Why it is slow
//! Tensor cores multiply matrices in bf16 many times faster than the FP32 units do, and half the bytes are moved.
//!
//! ## Example
//! ```python
//! loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Evidence
//! The program never enters `autocast` and the model is FP32; the time in matmul and memory-bound kernels if the GPU was traced; the
//! GPU's busy share and compute capability.
//!
//! ## Fix
//! Use `torch.autocast("cuda", dtype=torch.bfloat16)` around the forward pass and the loss (fp16 with a gradient scaler before
//! Ampere).
//!
//! ## When it is wrong
//! The model needs FP32 (some physics, some losses). Models bound by memory or by launches gain little, so the rule does not fire
//! while the GPU is not busy.
//!
//! ## References
//! LSTM on an H200: 208k samples/s with TF32, 302k with autocast. alloc recommends AMP from compute capability 7.
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>
//!
//! ---
//! ## 检测什么
//! 带 Tensor Core 的 GPU 以 FP32 计算，而时间正花在计算上。
//! ## 为什么慢
//! Tensor Core 以 bf16 做矩阵乘法比 FP32 单元快许多倍，搬运的字节也减半。
//! ## 证据
//! 从未进入 `autocast` 且模型为 FP32；matmul 与受内存限制的 kernel 的时间（跟踪到 GPU 时）；GPU 的忙碌占比和计算能力。
//! ## 怎么改
//! 在前向和损失外加 `torch.autocast("cuda", dtype=torch.bfloat16)`（Ampere 之前用 fp16 加缩放器）。
//! ## 何时不成立
//! 需要 FP32 的模型（部分物理计算、部分损失）；受内存或下发限制的模型收益很小，所以 GPU 不忙时本规则不会报告。
//! ## 参考
//! alloc 从计算能力 7 起推荐 AMP。DLProf 的用户：已开启仍被推荐 AMP；这里只看各步真正使用的精度。H200 上的 LSTM：TF32 每秒 208k 样本，autocast 302k。
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>

use crate::analysis::kernels::{Kernels, MEMORY_BOUND};
use crate::analysis::{Analysis, Device, FEW_PROCESSORS};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "mixed-precision-off";
pub const WORST: Severity = Severity::Critical;

/// The GPU must be what limits.
const GPU_BUSY: f64 = 0.7;
/// Tensor cores begin with Volta.
const CAPABILITY: u32 = 7;
/// bf16 without a scaler begins with Ampere.
const BF16_CAPABILITY: u32 = 8;
/// What of the busy time may go: twice the speed on all of it.
const GOES: f64 = 0.5;

/// Of the traced time: FP32 matmul is 15 times as fast in bf16 on an H100 by the vendor's figures, TF32 matmul and recurrent layers
/// twice; memory-bound kernels move half the bytes, but autocast keeps norms, softmax and losses in FP32.
const FP32_GOES: f64 = 0.9;
const TF32_GOES: f64 = 0.5;
const MEMORY_GOES: f64 = 0.3;
/// Small matrices gain less; this part of FP32 and of TF32 matmul surely goes.
const FP32_SURELY: f64 = 0.5;
const TF32_SURELY: f64 = 0.15;

/// What of the wall time surely goes, and what may go.
pub fn traced(kernels: &Kernels) -> (f64, f64) {
    let fp32 = kernels.share(&[KernelKind::MatrixFp32]);
    let tf32 = kernels.share(&[
        KernelKind::TensorCore,
        KernelKind::Recurrent,
        KernelKind::FusedAttention,
    ]);
    let memory = kernels.share(&MEMORY_BOUND);
    (
        fp32 * FP32_SURELY + tf32 * TF32_SURELY,
        fp32 * FP32_GOES + tf32 * TF32_GOES + memory * MEMORY_GOES,
    )
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.device() != Device::Cuda || analysis.facts.text("amp.dtype").as_deref() != Some("off") {
        return None;
    }
    if analysis
        .facts
        .text("model.dtype")
        .is_some_and(|dtype| !dtype.contains("float32"))
    {
        return None;
    }
    if analysis.facts.switch("amp.asked") == Some(true) {
        return None;
    }
    let (major, _) = analysis
        .busiest_gpu()?
        .info
        .compute_capability
        .filter(|(major, _)| *major >= CAPABILITY)?;
    let busy = analysis.device_busy_share().filter(|busy| *busy >= GPU_BUSY)?;
    // Where a kernel keeps few of the processors busy, faster arithmetic hardly shortens it.
    if analysis
        .processors_at_work()
        .is_some_and(|working| working < FEW_PROCESSORS)
    {
        return None;
    }
    let known = analysis.kernels.as_ref().map(traced);
    let (certain, goes) = known.unwrap_or((0.0, busy * GOES));
    if goes < WARNING_SHARE {
        return None;
    }
    let matmul = analysis.kernels.as_ref().map(|kernels| {
        let kinds = [
            KernelKind::MatrixFp32,
            KernelKind::TensorCore,
            KernelKind::Recurrent,
        ];
        kernels.share(&kinds)
    });
    let title = match matmul.map(units::percent) {
        Some(shown) => message!(
            en: "No mixed precision: {shown} of the time goes to FP32 or TF32 matmul",
            zh: "没有启用混合精度：{shown} 的时间用于 FP32 或 TF32 矩阵乘法"
        ),
        None => message!(
            en: "No mixed precision: the GPU is busy computing in FP32",
            zh: "没有启用混合精度：GPU 一直在用 FP32 计算"
        ),
    };
    let possible_s = goes * window.wall_s();
    let place = analysis.loop_place();
    let dtype = if major >= BF16_CAPABILITY { "bf16" } else { "fp16" };
    Some(
        Candidate::new(
            ID,
            severity_of(goes),
            title,
        )
        .confidence(Confidence::Medium)
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
        .evidence(Evidence::new(
            message!(en: "compute capability (tensor cores from 7)", zh: "计算能力（7 起有 Tensor Core）"),
            f64::from(major),
            "",
        ))
        .claims(Stretch::Device, Reach::Likely, certain * window.wall_s(), possible_s)
        .explains(busy * window.wall_s())
        .place(place.as_ref())
        .setting(
            "amp",
            Some("off".into()),
            dtype,
            message!(
                en: "torch.autocast(\"cuda\") in {dtype} around the forward pass and the loss",
                zh: "在前向和损失外加 torch.autocast(\"cuda\")，使用 {dtype}"
            ),
        )
        .code(
            place.as_ref(),
            message!(
                en: "Put `with torch.autocast(\"cuda\", dtype=…):` around the forward pass and the loss of \
                this loop",
                zh: "在这个循环的前向和损失外加 `with torch.autocast(\"cuda\", dtype=…):`"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn full(dtype: &str) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.98))
            .fact("amp.dtype", dtype)
    }

    #[test]
    fn fires() {
        assert!(run(check, full("off")).is_some());
        assert_eq!(causes(full("off")), [ID]);
    }

    #[test]
    fn the_gain_is_the_traced_time() {
        let traced = |matmul: f64, other: f64| {
            full("off").kernels(&[(KernelKind::TensorCore, matmul), (KernelKind::Optimizer, other)])
        };
        let finding = run(check, traced(600.0, 300.0)).unwrap();
        assert!(finding.title.en.contains("60%"), "{}", finding.title.en);
        let gain = crate::diagnose(&traced(600.0, 300.0).done()).findings[0]
            .gain
            .unwrap();
        assert!((gain.high - 1.0 / 0.7).abs() < 0.02, "{gain:?}");
        // An optimizer that takes all of the time gains nothing.
        assert!(run(check, traced(50.0, 900.0)).is_none());
    }

    #[test]
    fn quiet() {
        assert!(run(check, full("bf16")).is_none());
        assert!(run(check, full("off").gpu(|gpu| gpu.util = Some(0.2))).is_none());
        assert!(run(check, full("off").gpu(|gpu| gpu.sm_activity = Some(0.05))).is_none());
        assert!(run(check, full("off").fact("model.dtype", "torch.bfloat16")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
