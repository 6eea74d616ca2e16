//! # compile-failed
//!
//! ## What it detects
//! `torch.compile` failed, and the program continued without it.
//!
//! ## Why it is slow
//! If compiler errors are suppressed or caught, the model runs as if it had never been compiled, and the time spent compiling is
//! lost.
//!
//! ## Example
//! ```python
//! torch._dynamo.config.suppress_errors = True
//! model = torch.compile(model)  # RuntimeError: Failed to find C compiler
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.compile(model)  # with gcc and Triton installed
//! ```
//!
//! ## Evidence
//! The compiler's errors, the first line of the last one, and the source line.
//!
//! ## Fix
//! Fix the reported error. Common causes are a missing C++ compiler or Triton, and operations that `torch.compile` cannot trace.
//! Otherwise remove `torch.compile`.
//!
//! ## When it is wrong
//! The program tries several compile modes on purpose.
//!
//! ## References
//! PyTorch's troubleshooting guide for `torch.compile`.
//! <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>
//!
//! ---
//! ## 检测什么
//! `torch.compile` 失败，程序在没有编译的情况下继续运行。
//! ## 为什么慢
//! 错误被抑制或捕获后，模型就像从未编译过一样运行，还白白花了尝试的时间。
//! ## 证据
//! 编译器的错误、最后一个错误的第一行，以及源码行。
//! ## 怎么改
//! 修复错误所指的问题；常见的是缺少 C++ 编译器或 Triton，以及无法追踪的操作。或者不用 `torch.compile`。
//! ## 何时不成立
//! 有意尝试多种模式。
//! ## 参考
//! PyTorch 的 `torch.compile` 排错指南。
//! <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>

use crate::analysis::{Analysis, compiles};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Message, Severity, message};

pub const ID: &str = "compile-failed";
pub const WORST: Severity = Severity::Warning;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let errors = compiles::errors(analysis.data);
    if errors.count == 0 {
        return None;
    }
    let place = errors
        .places
        .first()
        .cloned()
        .or_else(|| analysis.facts.place("compile.called"));
    let detail = errors.message.map(Message::verbatim).unwrap_or_default();
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "torch.compile failed, so the steps run without it",
                zh: "torch.compile 失败，训练步骤在未编译的状态下运行"
            ),
        )
        .detail(detail)
        .evidence(
            analysis.in_run(
                Evidence::new(
                    message!(en: "compiler errors", zh: "编译错误次数"),
                    errors.count as f64,
                    "",
                )
                .against(1.0),
            ),
        )
        .place(place.as_ref())
        .code(
            place.as_ref(),
            message!(
                en: "Fix the error above (TORCH_LOGS=dynamo shows it in full), or remove torch.compile",
                zh: "修复上面的错误（TORCH_LOGS=dynamo 可查看完整信息），或去掉 torch.compile"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::EventKind;

    fn compiling(what: &str) -> Build {
        let message = Some("BackendCompilerFailed: no C++ compiler\nmore".to_owned());
        Build::steady(20).event(
            1.0,
            EventKind::Compile {
                what: what.into(),
                count: 1,
                message,
                place: None,
                duration_ms: None,
            },
        )
    }

    #[test]
    fn fires() {
        assert_eq!(
            run(check, compiling("error")).unwrap().detail.en,
            "BackendCompilerFailed: no C++ compiler"
        );
        assert_eq!(causes(compiling("error")), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, compiling("compiled")).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
