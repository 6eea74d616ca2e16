//! # tensor-printed-in-step
//!
//! ## What it detects
//! `print(loss)` or a logging call with a tensor runs at every step of a training loop, outside a logging interval.
//!
//! ## Why it is slow
//! To print the number, the CPU must wait for the GPU. Printing thousands of lines also takes time itself.
//!
//! ## Example
//! ```python
//! print(f"step {step}: loss {loss}")
//! ```
//!
//! ## Use instead
//! ```python
//! if step % 100 == 0:
//!     print(f"step {step}: loss {loss}")
//! ```
//!
//! ## Evidence
//! An argument is certainly a tensor, on its own or in an f-string, and every step reaches the call.
//!
//! ## Fix
//! Print every N steps: `if step % 100 == 0:`.
//!
//! ## When it is wrong
//! The loop has only a few long steps.
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都 `print(loss)` 或用 logger 输出张量，且不在日志间隔之内。
//! ## 为什么慢
//! 为了显示数值，CPU 必须等 GPU；打印几千行本身也有代价。
//! ## 证据
//! 参数肯定是张量（直接传入或在 f-string 中），位于每一步的路径上。
//! ## 怎么改
//! 每若干步打印一次：`if step % 100 == 0:`。
//! ## 何时不成立
//! 步数很少、每步很长的循环。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "tensor-printed-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        if hot != Hot::Step || !prints(call) {
            continue;
        }
        let Some(arguments) = call.arguments() else {
            continue;
        };
        let mut shown = arguments
            .positional
            .iter()
            .map(|id| call.at(*id))
            .flat_map(shown_values);
        let Some(tensor) = shown.find(|value| value.is_device_tensor()) else {
            continue;
        };
        let text = tensor.brief();
        let found = report.at(
            call,
            message!(en: "printing `{text}` makes the CPU wait for the GPU at every step", zh: "输出 `{text}` 使 CPU 在每一步都等待 GPU"),
        );
        add_wait_note(found, call);
        found.advice(message!(en: "print every N steps: `if step % 100 == 0:`", zh: "每隔若干步输出一次：`if step % 100 == 0:`"));
    }
}

fn prints(call: Code<'_>) -> bool {
    let by_print = call
        .callee()
        .is_some_and(|callee| callee.as_name() == Some("print"))
        && call.bindings("print").is_empty();
    let by_logger = call.method_call().is_some_and(|(receiver, method)| {
        matches!(method, "info" | "debug" | "warning") && receiver.text().to_ascii_lowercase().contains("log")
    });
    by_print || by_logger
}

/// The argument itself, or the values of an f-string.
fn shown_values(code: Code<'_>) -> Vec<Code<'_>> {
    match code.kind() {
        Kind::Formatted => code
            .subtree()
            .skip(1)
            .filter(|inner| inner.parent() == Some(code))
            .collect(),
        _ => vec![code],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.cuda()\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    print(f'loss {loss:.3f}')\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert_eq!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("f'loss {loss:.3f}'", "'loss', loss"))]
            )
            .len(),
            1
        );
    }

    #[test]
    fn quiet() {
        let interval = FIRES.replace("    print", "    if step % 9 == 0: print");
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
    }

    #[test]
    fn look_alike() {
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("{loss:.3f}", "{step}"))]).is_empty());
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("{loss:.3f}", "{loss.shape}"))]).is_empty());
    }
}
