//! # power-below-utilization
//!
//! ## What it detects
//! Utilization is high, but the GPU draws far less power than its limit.
//!
//! ## Why it is slow
//! Utilization counts the time in which any kernel ran, even one that uses a hundredth of the chip. Power draw shows how much of the
//! chip worked.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=16)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256)
//! ```
//!
//! ## Evidence
//! Mean utilization, and mean power draw relative to the limit.
//!
//! ## Fix
//! This is a symptom: look at the causes listed with it. If there are none, try larger batches, mixed precision and fused operations.
//!
//! ## When it is wrong
//! Memory-bound kernels draw less power than compute-bound ones.
//!
//! ## References
//! NVIDIA DCGM's guide: SM activity below 0.5 is ineffective use of the GPU.
//! <https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html>
//!
//! ---
//! ## 检测什么
//! 利用率很高，而 GPU 的功耗远低于上限。
//! ## 为什么慢
//! 利用率统计的是有任意 kernel 在运行的时间，哪怕只用了芯片的百分之一。功耗才显示有多少在工作。
//! ## 证据
//! 平均利用率，以及平均功耗与上限之比。
//! ## 怎么改
//! 这是症状：看上面的原因；没有原因时，更大的 batch、混合精度、融合算子。
//! ## 何时不成立
//! 受内存带宽限制的 kernel 比计算型的功耗低。
//! ## 参考
//! NVIDIA DCGM 指南：SM 活跃度低于 0.5 即为低效使用。
//! <https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Kind, Severity, message, units};

pub const ID: &str = "power-below-utilization";
pub const WORST: Severity = Severity::Information;

const UTIL: f64 = 0.8;
const POWER: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let gpu = analysis
        .busiest_gpu()
        .filter(|_| analysis.device() == Device::Cuda)?;
    let util = gpu.util.filter(|util| *util >= UTIL)?;
    let (power, limit) = (gpu.power_w?, gpu.power_limit_w.filter(|limit| *limit > 0.0)?);
    if power / limit >= POWER {
        return None;
    }
    let (shown, used) = (units::percent(power / limit), units::percent(util));
    Some(
        Candidate::new(
            ID,
            Severity::Information,
            message!(
                en: "Utilization reads {used}, but the GPU draws only {shown} of its power limit",
                zh: "利用率显示 {used}，但功耗只有上限的 {shown}：芯片大部分空闲"
            ),
        )
        .kind(Kind::Symptom)
        .evidence(analysis.in_window(
            Evidence::new(message!(en: "mean power draw", zh: "平均功耗"), power, "W").against(limit * POWER),
        ))
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

    fn drawing(watts: f64) -> Build {
        Build::steady(20).gpu(|gpu| {
            gpu.util = Some(0.95);
            gpu.power_w = Some(watts);
            gpu.power_limit_w = Some(700.0);
        })
    }

    #[test]
    fn fires() {
        assert_eq!(run(check, drawing(200.0)).unwrap().kind, Kind::Symptom);
    }

    #[test]
    fn quiet() {
        assert!(run(check, drawing(600.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
