//! # double-precision
//!
//! ## What it detects
//! The model, or part of the step, computes in float64.
//!
//! ## Why it is slow
//! A CPU computes float64 at half the speed of float32, a GPU at 1/2 to 1/64, and every tensor takes twice the memory.
//!
//! ## Example
//! ```python
//! x = torch.from_numpy(np.load("x.npy"))  # float64
//! model = Model().double()
//! ```
//!
//! ## Use instead
//! ```python
//! x = torch.from_numpy(np.load("x.npy").astype(np.float32))
//! model = Model()
//! ```
//!
//! ## Evidence
//! The dtype of the model's parameters, and the time in FP64 matmul kernels if the GPU was traced.
//!
//! ## Fix
//! Use `model.float()` and float32 inputs. NumPy arrays are float64 unless `dtype=np.float32` is given.
//!
//! ## When it is wrong
//! The problem needs double precision, as some physics and optimization problems do.
//!
//! ## References
//! NumPy and Python floats are float64 by default.
//! <https://docs.pytorch.org/docs/stable/tensor_attributes.html>
//!
//! ---
//! ## 检测什么
//! 模型或步骤的一部分以 float64 计算。
//! ## 为什么慢
//! CPU 每秒能做的 float64 运算只有 float32 的一半，GPU 只有 1/2 到 1/64；每个 tensor 占两倍内存。
//! ## 证据
//! 模型参数的 dtype；FP64 matmul kernel 的时间（跟踪到 GPU 时）。
//! ## 怎么改
//! `model.float()` 并使用 float32 输入：NumPy 数组默认是 float64，除非指定 `dtype=np.float32`。
//! ## 何时不成立
//! 问题确实需要双精度（某些物理和优化问题）。
//! ## 参考
//! NumPy 和 Python 的浮点数默认是 float64。
//! <https://docs.pytorch.org/docs/stable/tensor_attributes.html>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "double-precision";
pub const WORST: Severity = Severity::Critical;

/// The part of the arithmetic that goes: half of it on a CPU, nearly all on most GPUs. Memory-bound steps gain as much.
const CERTAIN: f64 = 0.25;
const ON_CPU: f64 = 0.5;
const ON_GPU: f64 = 0.9;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    if analysis.facts.text("model.dtype").as_deref() != Some("float64") {
        return traced(analysis);
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
                en: "The model computes in float64: twice the memory, half the speed of float32",
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

/// FP64 kernels of a model whose parameters are not float64.
fn traced(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let kernels = analysis.kernels.as_ref()?;
    let share = kernels.share(&[KernelKind::MatrixFp64]);
    if share < WARNING_SHARE {
        return None;
    }
    let seconds = share * window.wall_s();
    let line = kernels.line_of(&[KernelKind::MatrixFp64]);
    let place = line
        .map(|line| line.place())
        .or_else(|| analysis.mention(&["float64", ".double()"]));
    let shown = units::percent(share);
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            message!(
                en: "Part of the step runs in float64: FP64 matmul takes {shown} of the time",
                zh: "步骤的一部分以 float64 计算：FP64 矩阵乘法占 {shown} 的时间"
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time in FP64 matmul kernels", zh: "FP64 matmul kernel 的时间"),
                    share * 100.0,
                    "%",
                )
                .against(WARNING_SHARE * 100.0),
            ),
        )
        .place(place.as_ref())
        .claims(
            Stretch::Device,
            Reach::Specific,
            seconds * CERTAIN,
            seconds * ON_GPU,
        )
        .code(
            place.as_ref(),
            message!(
                en: "Convert to float32 before this line, unless the result needs float64",
                zh: "在此行之前转换为 float32，除非结果确实需要 float64"
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
    fn names_the_line_of_fp64_kernels() {
        let part = |ms: f64| {
            Build::steady(20)
                .gpu(|gpu| gpu.util = Some(0.9))
                .fact("model.dtype", "float32")
                .kernels(&[(KernelKind::MatrixFp64, ms), (KernelKind::TensorCore, 400.0)])
                .launch(
                    &["main (t.py:9)", "covariance (t.py:4)"],
                    KernelKind::MatrixFp64,
                    ms,
                )
        };
        let finding = run(check, part(300.0)).unwrap();
        assert_eq!(finding.places, [flatout_core::Place::new("t.py", 4)]);
        assert!(run(check, part(20.0)).is_none());
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
