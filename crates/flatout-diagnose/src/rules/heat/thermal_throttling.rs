//! # thermal-throttling
//!
//! ## What it detects
//! The GPU lowers its clocks because it is too hot.
//!
//! ## Why it is slow
//! Lower clocks slow down every kernel for as long as the GPU stays hot.
//!
//! ## Example
//! ```sh
//! nvidia-smi -q -d TEMPERATURE,PERFORMANCE   # 87 C, HW Thermal Slowdown: Active
//! ```
//!
//! ## Use instead
//! ```sh
//! nvidia-smi -pl 300   # from 350 W: less heat, steady clocks
//! ```
//!
//! ## Evidence
//! The share of the steady part in which the driver reports a thermal reason for throttling, and the highest temperature.
//!
//! ## Fix
//! Improve the cooling, lower the power limit (less heat at almost the same speed), or use another GPU.
//!
//! ## When it is wrong
//! Almost never: the driver itself reports it.
//!
//! ## References
//! NVML's clock event reasons. Data-center GPUs typically slow down at about 85 °C.
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>
//!
//! ---
//! ## 检测什么
//! GPU 因过热而降低频率。
//! ## 为什么慢
//! 频率降低会拖慢每个 kernel，直到温度下降。
//! ## 证据
//! 驱动报告的、稳定阶段中因过热降频的时间占比，以及最高温度。
//! ## 怎么改
//! 改善散热、降低功耗上限（更少的热量，几乎不变慢），或换一块 GPU。
//! ## 何时不成立
//! 几乎不会：这是驱动自己说的。
//! ## 参考
//! NVML 的时钟事件原因。gpuprof：高于 82 °C 且频率下降 15%；数据中心 GPU 通常在约 85 °C 开始降频。
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "thermal-throttling";
pub const WORST: Severity = Severity::Warning;

/// A moment of it is no habit.
const SHARE: f64 = 0.1;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // What happens on a card that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let hot = |gpu: &crate::analysis::gpus::Gpu| gpu.throttled(|reason| reason.contains("thermal"));
    let gpu = analysis.gpus.iter().max_by(|a, b| hot(a).total_cmp(&hot(b)))?;
    let share = hot(gpu);
    if share < SHARE {
        return None;
    }
    let (index, shown) = (gpu.index, units::percent(share));
    let mut candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "GPU {index} is throttled by heat {shown} of the time",
            zh: "GPU {index} 有 {shown} 的时间因过热降频"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time throttled by heat", zh: "因过热降频的时间"),
                share * 100.0,
                "%",
            )
            .against(SHARE * 100.0),
        ),
    )
    .code(
        None,
        message!(
            en: "Improve cooling or lower the power limit: throttling costs more speed",
            zh: "改善散热，或降低功耗上限：比降频损失的速度更少"
        ),
    );
    if let Some(temperature) = gpu.temp_max_c {
        candidate = candidate.evidence(Evidence::new(
            message!(en: "highest temperature", zh: "最高温度"),
            temperature,
            "°C",
        ));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn reason(name: &str) -> Build {
        Build::steady(20).gpu(|gpu| {
            gpu.throttle = Some(vec![name.into()]);
            gpu.temp_c = Some(88.0);
        })
    }

    #[test]
    fn fires() {
        assert!(run(check, reason("thermal-sw")).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, reason("power-cap")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
