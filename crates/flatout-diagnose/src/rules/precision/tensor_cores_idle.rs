//! # tensor-cores-idle
//!
//! ## What it detects
//! The GPU reads busy, but its tensor cores do almost nothing.
//!
//! ## Why it is slow
//! Utilization only means that some kernel was running. Without tensor cores the GPU computes at a fraction of its speed, or the
//! kernels move memory and compute little.
//!
//! ## Example
//! ```python
//! layer = nn.Linear(509, 1001)
//! out = layer(x)
//! ```
//!
//! ## Use instead
//! ```python
//! layer = nn.Linear(512, 1008)
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     out = layer(x)
//! ```
//!
//! ## Evidence
//! The time in kernels that use tensor cores if the GPU was traced; otherwise tensor core activity and utilization as the driver
//! reports them (GPM, Hopper and newer).
//!
//! ## Fix
//! Use mixed precision, sizes that are multiples of 8, and larger matrices. This is a symptom; its cause has a finding of its own.
//!
//! ## When it is wrong
//! Models without matrix multiplications (trees, elementwise models).
//!
//! ## References
//! The PyTorch TensorBoard plugin reports missing tensor core kernels on compute capability 7 and newer. NVIDIA DCGM's guide on
//! tensor activity.
//! <https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/>
//!
//! ---
//! ## 检测什么
//! GPU 看起来很忙，但 Tensor Core 几乎不工作。
//! ## 为什么慢
//! 利用率只说明有 kernel 在运行。不用 Tensor Core，GPU 只发挥出一小部分速度，或者 kernel 主要在搬运内存。
//! ## 证据
//! 跟踪到 GPU 时：使用 Tensor Core 的 kernel 的时间。否则用驱动统计的 Tensor Core 活跃度和利用率（GPM，Hopper 及更新）。
//! ## 怎么改
//! 混合精度；尺寸取 8 的倍数；更大的矩阵。这是症状：原因由其他规则给出。
//! ## 何时不成立
//! 没有矩阵乘法的模型（树形、逐元素）。
//! ## 参考
//! TensorBoard 插件：计算能力 7 及以上却没有 Tensor Core kernel。DCGM 关于 Tensor 活跃度的指南。
//! <https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Kind, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "tensor-cores-idle";
pub const WORST: Severity = Severity::Information;

/// Below this share of the time the tensor cores are as good as unused.
const TENSOR: f64 = 0.03;
/// While the GPU reads busy.
const UTIL: f64 = 0.8;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let gpu = analysis
        .busiest_gpu()
        .filter(|_| analysis.device() == Device::Cuda)?;
    let util = analysis
        .traced_busy_share()
        .or(gpu.util)
        .filter(|util| *util >= UTIL)?;
    let traced = analysis.kernels.as_ref().map(|kernels| {
        kernels.share(&[
            KernelKind::TensorCore,
            KernelKind::FusedAttention,
            KernelKind::Recurrent,
        ])
    });
    let tensor = traced.or(gpu.tensor_activity).filter(|tensor| *tensor < TENSOR)?;
    let shown = units::percent(tensor);
    Some(
        Candidate::new(
            ID,
            Severity::Information,
            message!(
                en: "Tensor cores are active only {shown} of the time, although the GPU reads busy",
                zh: "GPU 看起来很忙，但 Tensor Core 只有 {shown} 的时间在工作"
            ),
        )
        .kind(Kind::Symptom)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "tensor-core activity", zh: "Tensor Core 活跃度"),
                    tensor * 100.0,
                    "%",
                )
                .against(TENSOR * 100.0),
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "GPU utilization", zh: "GPU 利用率"),
                    util * 100.0,
                    "%",
                )
                .against(UTIL * 100.0),
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn activity(tensor: f64) -> Build {
        Build::steady(20).batch(512).gpu(|gpu| {
            gpu.util = Some(0.98);
            gpu.tensor_activity = Some(tensor);
        })
    }

    #[test]
    fn fires() {
        assert_eq!(run(check, activity(0.001)).unwrap().kind, Kind::Symptom);
        let plain = activity(0.3).kernels(&[(KernelKind::MatrixFp32, 900.0)]);
        assert_eq!(run(check, plain).unwrap().kind, Kind::Symptom);
    }

    #[test]
    fn quiet() {
        assert!(run(check, activity(0.3)).is_none());
        let used = activity(0.001).kernels(&[(KernelKind::TensorCore, 900.0)]);
        assert!(run(check, used).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
