//! # far-from-peak
//!
//! ## What it detects
//! The GPU is busy almost all of the time, but the model uses only a small part of its peak FLOPS.
//!
//! ## Why it is slow
//! Utilization only means that some kernel was running. Memory-bound kernels, small matrices and full precision keep the GPU busy far
//! below its peak.
//!
//! ## Example
//! ```python
//! loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.compile(model)
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Evidence
//! Model FLOPs utilization (MFU): the operations of forward and backward, counted once from the autograd graph of a few steps, per
//! second, relative to the vendor's peak in the same precision. Also the kinds of kernels that take the time.
//!
//! ## Fix
//! It depends on what takes the time: `torch.compile` fuses memory-bound kernels, bf16 replaces FP32, a larger batch enlarges small
//! matrices. This finding is a symptom; its causes have findings of their own.
//!
//! ## When it is wrong
//! Models made of embeddings, norms or scans have little arithmetic by nature.
//!
//! ## References
//! Chowdhery et al., "PaLM" (2022), defines MFU. Well-tuned transformers reach 40 to 60%, ResNet-50 about 20 to 30%.
//! <https://arxiv.org/abs/2204.02311>
//!
//! ---
//! ## 检测什么
//! GPU 几乎一直忙碌，但模型的计算量只是其能力的一小部分。
//! ## 为什么慢
//! 利用率只说明有 kernel 在运行。搬运内存的 kernel、小矩阵和全精度会让 GPU 忙碌却远低于峰值。
//! ## 证据
//! 模型 FLOPs 利用率（MFU）：从几步的计算图统计一次前向与反向的运算量，按每秒计，对比同精度下厂商给出的峰值；以及耗时的 kernel 种类。
//! ## 怎么改
//! 看时间花在哪里：受内存限制的 kernel 用 `torch.compile` 融合，FP32 改为 bf16，小矩阵随 batch 增大。这是症状：原因另有结论。
//! ## 何时不成立
//! 以 embedding、归一化或扫描为主的模型本来计算量就小。
//! ## 参考
//! Chowdhery 等《PaLM》（2022）定义了 MFU；调得好的 transformer 达到 40% 到 60%，ResNet-50 约 20% 到 30%。
//! <https://arxiv.org/abs/2204.02311>

use crate::analysis::efficiency::Efficiency;
use crate::analysis::kernels::kind_name;
use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Kind, Severity, message, units};

pub const ID: &str = "far-from-peak";
pub const WORST: Severity = Severity::Information;

const GPU_BUSY: f64 = 0.85;
/// Half of what convolutional networks reach.
const MFU: f64 = 0.15;
/// Kinds of kernels that are named.
const NAMED: usize = 3;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let kernels = analysis.kernels.as_ref()?;
    if analysis.device() != Device::Cuda {
        return None;
    }
    let busy = analysis.device_busy_share().filter(|busy| *busy >= GPU_BUSY)?;
    let efficiency = Efficiency::of(analysis).filter(|found| !found.at_least)?;
    let mfu = efficiency.share().filter(|share| *share < MFU)?;
    let (shown, reached) = (units::percent(busy), units::percent(mfu));
    let mut candidate = Candidate::new(
        ID,
        Severity::Information,
        message!(
            en: "The GPU is busy {shown} of the time but reaches only {reached} of its peak FLOPS",
            zh: "GPU 有 {shown} 的时间忙碌，但只达到峰值算力的 {reached}"
        ),
    )
    .kind(Kind::Symptom)
    .evidence(
        analysis
            .in_window(Evidence::new(message!(en: "MFU", zh: "MFU"), mfu * 100.0, "%").against(MFU * 100.0)),
    );
    for (time, share) in kernels.shares().into_iter().take(NAMED) {
        candidate =
            candidate.evidence(analysis.in_window(Evidence::new(kind_name(time.kind), share * 100.0, "%")));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_record::KernelKind;

    /// 100 steps per second.
    fn computing(flops: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.95))
            .fact("step.flops", flops)
            .fact("step.flops_dtype", "bfloat16")
            .fact("peak.vendor.bf16", 989.0)
            .kernels(&[(KernelKind::Elementwise, 700.0), (KernelKind::TensorCore, 250.0)])
    }

    #[test]
    fn fires() {
        let finding = run(check, computing(5e11)).unwrap();
        assert_eq!(finding.kind, Kind::Symptom);
        assert!(finding.title.en.contains("95%"), "{}", finding.title.en);
        assert_eq!(finding.evidence.len(), 3);
    }

    #[test]
    fn quiet() {
        assert!(run(check, computing(4e12)).is_none());
        let unknown = Build::steady(20).gpu(|gpu| gpu.util = Some(0.95));
        assert!(run(check, unknown.kernels(&[(KernelKind::Elementwise, 950.0)])).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
