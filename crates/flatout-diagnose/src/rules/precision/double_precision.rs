//! # double-precision
//!
//! ## What it detects
//! The model computes in float64.
//! ## Why it is slow
//! A CPU does half as many float64 operations per second as float32 ones, a GPU between 1/2 and 1/64; every tensor takes twice the memory.
//! ## Evidence
//! The dtype of the model's parameters.
//! ## Fix
//! `model.float()` and float32 inputs: NumPy arrays are float64 unless `dtype=np.float32` is given.
//! ## When it is wrong
//! The problem needs double precision (some physics and optimization does).
//! ## References
//! NumPy and Python floats are float64 by default.
//!
//! ---
//! ## 检测什么
//! 模型以 float64 计算。
//! ## 为什么慢
//! CPU 每秒能做的 float64 运算只有 float32 的一半，GPU 只有 1/2 到 1/64；每个 tensor 占两倍内存。
//! ## 证据
//! 模型参数的 dtype。
//! ## 怎么改
//! `model.float()` 并使用 float32 输入：NumPy 数组默认是 float64，除非指定 `dtype=np.float32`。
//! ## 何时不成立
//! 问题确实需要双精度（某些物理和优化问题）。
//! ## 参考
//! NumPy 和 Python 的浮点数默认是 float64。

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message};

pub const ID: &str = "double-precision";
pub const WORST: Severity = Severity::Critical;

/// The part of the arithmetic that goes: half of it on a CPU, nearly all on most GPUs. Memory-bound steps gain as much.
const CERTAIN: f64 = 0.25;
const ON_CPU: f64 = 0.5;
const ON_GPU: f64 = 0.9;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.facts.text("model.dtype").as_deref() != Some("float64") {
        return None;
    }
    let (stretch, most) = match analysis.device() {
        Device::Cuda => (Stretch::Device, ON_GPU),
        _ => (Stretch::Dispatch, ON_CPU),
    };
    let compute_s = match analysis.device() {
        Device::Cuda => analysis.device_busy_share()? * window.wall_s(),
        _ => analysis.computing_share() * window.wall_s(),
    };
    let share = compute_s * most / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let place = analysis.mention(&["float64", ".double()", "set_default_dtype"]);
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "The model computes in float64: twice the memory and at most half the speed of float32",
                zh: "模型以 float64 计算：内存是 float32 的两倍，速度至多一半"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(analysis.in_window(Evidence::new(
            message!(en: "time computing", zh: "计算时间"),
            compute_s / window.wall_s() * 100.0,
            "%",
        )))
        .place(place.as_ref())
        .claims(stretch, Reach::Specific, compute_s * CERTAIN, compute_s * most)
        .explains(compute_s)
        .code(
            place.as_ref(),
            message!(
                en: "Use float32: model.float(), dtype=torch.float32, arrays with .astype(np.float32)",
                zh: "使用 float32：model.float()、dtype=torch.float32、数组用 .astype(np.float32)"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn model(dtype: &str) -> Build {
        Build::steady(20).fact("device", "cpu").fact("model.dtype", dtype)
    }

    #[test]
    fn fires() {
        let finding = run(check, model("float64")).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, model("float32")).is_none());
        assert!(run(check, model("bfloat16")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
