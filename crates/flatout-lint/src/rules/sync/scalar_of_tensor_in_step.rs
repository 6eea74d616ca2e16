//! # scalar-of-tensor-in-step
//!
//! ## What it detects
//! `float(loss)`, `int(count)` or `bool(mask.any())` converts a tensor at every step of a training loop, outside a logging interval.
//!
//! ## Why it is slow
//! It does the same as `.item()`: the CPU waits for the GPU.
//!
//! ## Example
//! ```python
//! total += float(loss)
//! ```
//!
//! ## Use instead
//! ```python
//! total += loss.detach()
//! ```
//!
//! ## Evidence
//! The argument is certainly a tensor: a result of `torch`, derived from the loss, or what `.backward()` is called on.
//!
//! ## Fix
//! Keep `loss.detach()` and convert it only when you log it.
//!
//! ## Fix safety
//! `--fix --unsafe` turns `total += float(loss)` into `total += loss.detach()`. It is unsafe because the sum becomes a tensor.
//!
//! ## When it is wrong
//! The tensor is on the CPU.
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都对张量使用 `float(loss)`、`int(count)` 或 `bool(mask.any())`，且不在日志间隔之内。
//! ## 为什么慢
//! 这只是 `.item()` 的另一种写法：CPU 要等 GPU。
//! ## 证据
//! 参数肯定是张量：`torch` 或损失的结果，或被调用 `.backward()` 的对象。
//! ## 怎么改
//! 保留 `loss.detach()`，显示时才转换。
//! ## 修改是否安全
//! `--fix --unsafe` 把 `total += float(loss)` 改为 `total += loss.detach()`。之所以不安全，是因为总和会变成张量。
//! ## 何时不成立
//! 张量在 CPU 上。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "scalar-of-tensor-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in cuda_step_calls(project, module) {
        let converts = call
            .callee()
            .and_then(Code::as_name)
            .is_some_and(|name| matches!(name, "float" | "int" | "bool"));
        if hot != Hot::Step || !converts || call.argument_count() != 1 {
            continue;
        }
        let Some(argument) = call.positional(0).filter(|argument| argument.is_device_tensor()) else {
            continue;
        };
        let text = call.brief();
        let found = report.at(
            call,
            message!(en: "`{text}` makes the CPU wait for the GPU at every step", zh: "`{text}` 使 CPU 在每一步都等待 GPU"),
        );
        add_wait_note(found, call);
        let added = call.parent().is_some_and(|parent| {
            matches!(
                parent.kind(),
                Kind::AugmentedAssign {
                    operator: Operator::Add,
                    ..
                }
            )
        });
        let say = message!(en: "keep the detached tensor and convert it only when it is logged", zh: "保留 `.detach()`，需要显示时再转换");
        if added && matches!(argument.kind(), Kind::Name) {
            let text = format!("{}.detach()", argument.text());
            found.unsafe_fix(vec![call.replace(text)], say);
        } else {
            found.advice(say);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.cuda()\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    total += float(loss)\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).contains("total += loss.detach()"));
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("float(loss)", "loss.detach()"))]
            )
            .is_empty()
        );
        let interval = FIRES.replace("    total +=", "    if i % 10 == 0: total +=");
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
    }

    #[test]
    fn look_alike() {
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("float(loss)", "float(len(x))"))]
            )
            .is_empty()
        );
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("float(loss)", "int(row['count'])"))]
            )
            .is_empty()
        );
    }
}
