//! # power-throttling
//!
//! ## What it detects
//! The GPU lowers its clocks because it reached its power limit.
//!
//! ## Why it is slow
//! A GPU at its power limit is working as hard as it can, which is good, unless the limit was lowered or the machine's power brake is
//! active.
//!
//! ## Example
//! ```sh
//! nvidia-smi -pl 200   # on a GPU whose default is 350 W
//! ```
//!
//! ## Use instead
//! ```sh
//! nvidia-smi -pl 350
//! ```
//!
//! ## Evidence
//! The share of the steady part in which the driver reports a power reason for throttling, and power draw relative to the limit.
//!
//! ## Fix
//! If the limit was lowered, raise it with `nvidia-smi -pl`. If the hardware power brake is active, check the power supply.
//!
//! ## When it is wrong
//! Reaching the factory power limit is normal at full load and reported as a note only.
//!
//! ## References
//! NVML's clock event reasons: software power cap, hardware power brake.
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>
//!
//! ---
//! ## 检测什么
//! GPU 在功耗上限处降低频率。
//! ## 为什么慢
//! 到达上限的 GPU 已经忙到极限，这是好事，除非上限被调低，或机器的电源制动在起作用。
//! ## 证据
//! 驱动报告的、稳定阶段中因功耗降频的时间占比；功耗与上限之比。
//! ## 怎么改
//! 上限被调低时将其调高（`nvidia-smi -pl`）；硬件制动起作用时检查电源。
//! ## 何时不成立
//! 满载时软件限制在出厂上限是正常的：只作提示。
//! ## 参考
//! NVML 的时钟事件原因：软件功耗上限、硬件电源制动。
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Fix, Kind, Severity, message, units};

pub const ID: &str = "power-throttling";
pub const WORST: Severity = Severity::Warning;

/// The software's cap: this much of the time before it is mentioned.
const CAP_SHARE: f64 = 0.5;
/// The hardware's brake: never normal.
const BRAKE_SHARE: f64 = 0.1;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // What happens on a card that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let brake_of = |gpu: &crate::analysis::gpus::Gpu| gpu.throttled(|reason| reason.contains("brake"));
    let cap_of = |gpu: &crate::analysis::gpus::Gpu| gpu.throttled(|reason| reason.contains("power"));
    let gpu = analysis
        .gpus
        .iter()
        .max_by(|a, b| cap_of(a).total_cmp(&cap_of(b)))?;
    let (brake, cap, index) = (brake_of(gpu), cap_of(gpu), gpu.index);
    let (severity, kind, share, limit) = if brake >= BRAKE_SHARE {
        (Severity::Warning, Kind::Cause, brake, BRAKE_SHARE)
    } else if cap >= CAP_SHARE {
        (Severity::Information, Kind::Symptom, cap, CAP_SHARE)
    } else {
        return None;
    };
    let shown = units::percent(share);
    let mut candidate = Candidate::new(
        ID,
        severity,
        message!(
            en: "GPU {index} is throttled by its power limit {shown} of the time",
            zh: "GPU {index} 有 {shown} 的时间受功耗上限限制"
        ),
    )
    .kind(kind)
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "time at the power limit", zh: "处于功耗上限的时间"),
                share * 100.0,
                "%",
            )
            .against(limit * 100.0),
        ),
    );
    candidate = candidate.fix(Fix::Command {
        command: format!("nvidia-smi -q -d POWER -i {index}"),
        say: message!(en: "compare the current power limit with the GPU's default", zh: "比较当前上限与显卡默认上限"),
    });
    if let (Some(power), Some(limit)) = (gpu.power_w, gpu.power_limit_w) {
        let what = message!(en: "mean power draw (limit: the GPU's)", zh: "平均功耗（阈值为显卡上限）");
        candidate = candidate.evidence(analysis.in_window(Evidence::new(what, power, "W").against(limit)));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn reason(name: &str) -> Build {
        Build::steady(20).gpu(|gpu| gpu.throttle = Some(vec![name.into()]))
    }

    #[test]
    fn fires() {
        assert_eq!(
            run(check, reason("power-brake-hw")).unwrap().severity,
            Severity::Warning
        );
        assert_eq!(run(check, reason("power-cap")).unwrap().kind, Kind::Symptom);
    }

    #[test]
    fn quiet() {
        assert!(run(check, reason("idle")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
