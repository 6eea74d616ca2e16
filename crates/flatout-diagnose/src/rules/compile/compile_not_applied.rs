//! # compile-not-applied
//!
//! ## What it detects
//! `torch.compile` was called, but the steps do not run the compiled model.
//!
//! ## Why it is slow
//! `torch.compile` returns a new callable. If the loop keeps calling the original model, nothing is ever compiled.
//!
//! ## Example
//! ```python
//! torch.compile(model)
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.compile(model)
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//! ```
//!
//! ## Evidence
//! `torch.compile` was called, nothing was compiled, and training steps ran.
//!
//! ## Fix
//! Use the model that it returns: `model = torch.compile(model)`.
//!
//! ## When it is wrong
//! The compiled function is used in a part of the program that this run did not reach, such as evaluation.
//!
//! ## References
//! PyTorch's documentation of `torch.compile`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>
//!
//! ---
//! ## 检测什么
//! 调用了 `torch.compile`，但训练步骤运行的不是编译后的模型。
//! ## 为什么慢
//! `torch.compile` 返回一个新的可调用对象。循环若继续调用旧模型，就从不会编译。
//! ## 证据
//! 调用过 `torch.compile`、没有发生编译、并且运行了训练步骤。
//! ## 怎么改
//! 使用它的返回值：`model = torch.compile(model)`。
//! ## 何时不成立
//! 编译的函数在本次运行中没有用到（只用于评估）。
//! ## 参考
//! PyTorch 文档：`torch.compile`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>

use crate::analysis::{Analysis, compiles};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Severity, message};

pub const ID: &str = "compile-not-applied";
pub const WORST: Severity = Severity::Warning;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    if facts.switch("compile.called") != Some(true) || facts.switch("compile.applied") != Some(false) {
        return None;
    }
    if compiles::errors(analysis.data).count > 0 {
        return None;
    }
    let place = facts.place("compile.called");
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "torch.compile was called, but no step runs the compiled model",
                zh: "调用了 torch.compile，但训练步骤没有使用编译后的模型"
            ),
        )
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "steps without a compiled model", zh: "未使用编译模型的步数"),
                    window.steps as f64,
                    "",
                )
                .against(1.0),
            ),
        )
        .place(place.as_ref())
        .code(
            place.as_ref(),
            message!(
                en: "Use the model it returns: model = torch.compile(model)",
                zh: "使用它的返回值：model = torch.compile(model)"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn called(applied: bool) -> Build {
        Build::steady(20)
            .fact("compile.called", true)
            .fact("compile.applied", applied)
    }

    #[test]
    fn fires() {
        assert!(run(check, called(false)).is_some());
        assert_eq!(causes(called(false)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, called(true)).is_none());
        assert!(run(check, Build::steady(20).fact("compile.applied", false)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
