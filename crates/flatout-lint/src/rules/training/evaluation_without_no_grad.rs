//! # evaluation-without-no-grad
//!
//! ## What it detects
//! A loop evaluates a model (`model.eval()`, batches from a DataLoader, no `backward()`) without `torch.no_grad()` or
//! `torch.inference_mode()`.
//!
//! ## Why it is slow
//! Every operation records itself for a backward pass that never happens. The activations stay in memory, so the batch must be
//! smaller, and each operation costs more Python time.
//!
//! ## Example
//! ```python
//! def validate(model, loader):
//!     model.eval()
//!     for x, y in loader:
//!         total += criterion(model(x), y)
//! ```
//!
//! ## Use instead
//! ```python
//! @torch.no_grad()
//! def validate(model, loader):
//!     model.eval()
//!     for x, y in loader:
//!         total += criterion(model(x), y)
//! ```
//!
//! ## Evidence
//! Neither the loop, nor its function, nor any caller in the project disables gradients.
//!
//! ## Fix
//! Decorate the function with `@torch.no_grad()`, or put `with torch.inference_mode():` around the loop.
//!
//! ## Fix safety
//! `--fix --unsafe` adds `@torch.no_grad()`. It is unsafe because code in the function that needs gradients would stop working.
//!
//! ## When it is wrong
//! The evaluation itself needs gradients (saliency, adversarial examples, physics residuals): functions that mention `grad` are not
//! reported.
//!
//! ## References
//! PyTorch documentation, "Autograd mechanics: Locally disabling gradient computation".
//! <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>
//!
//! ---
//! ## 检测什么
//! 评估模型的循环（`model.eval()`、来自 loader 的 batch、没有 `backward()`）没有使用 `torch.no_grad()` 或 `torch.inference_mode()`。
//! ## 为什么慢
//! 每个运算都为永远不会到来的反向传播作记录：激活值留在显存中，batch 只能更小，Python 对每个运算也要多做工作。
//! ## 证据
//! 循环、其所在函数以及项目中的任何调用者都没有关闭梯度。
//! ## 怎么改
//! 给函数加 `@torch.no_grad()`，或在循环外加 `with torch.inference_mode():`。
//! ## 修改是否安全
//! `--fix --unsafe` 会加上 `@torch.no_grad()`。之所以不安全，是因为函数中需要梯度的代码将不再工作。
//! ## 何时不成立
//! 评估本身需要梯度（显著图、对抗样本、物理残差）：提到 `grad` 的函数不在此列。
//! ## 参考
//! PyTorch 文档“Autograd mechanics: Locally disabling gradient computation”。
//! <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>

use crate::rules::prelude::*;

pub const ID: &str = "evaluation-without-no-grad";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for around in project.flow().loops(project, module, LoopRole::Evaluation) {
        let Some(function) = around.function_around() else {
            continue;
        };
        // `requires_grad`, `autograd.grad`, `set_grad_enabled`: somebody has thought of gradients.
        if around.without_gradients() || function.text().contains("grad") || !switches_to_eval(function) {
            continue;
        }
        let guarded_call = |call: Code<'_>| {
            call.without_gradients() || call.body_around().text().contains("set_grad_enabled")
        };
        let mut callers = project.callers(function).peekable();
        if callers.peek().is_some() && callers.any(guarded_call) {
            continue;
        }
        let holds_gradients = around.runs().any(|code| {
            matches!(code.kind(), Kind::With { items, .. } if items.iter().any(|(context, _)| code.at(*context).text().contains("no_grad")))
        });
        if holds_gradients || !calls_model(around) {
            continue;
        }
        let found = report.in_source(
            &around.in_module().source,
            head(around),
            message!(
                en: "evaluation runs with gradients enabled, so every batch keeps activations that nothing \
                uses",
                zh: "评估时仍在记录梯度：每个 batch 都白白保留激活值"
            ),
        );
        let say = message!(en: "decorate the function with `@torch.no_grad()`", zh: "在函数上加 `@torch.no_grad()`");
        let torch_is_here = around
            .bindings("torch")
            .iter()
            .any(|one| matches!(&one.bound, Bound::Import(path) if &**path == "torch"));
        if torch_is_here && function.decorators().next().is_none() && !function.text().starts_with("async") {
            let line_break = if function.in_module().source.text.contains("\r\n") {
                "\r\n"
            } else {
                "\n"
            };
            let decorator = format!("@torch.no_grad(){line_break}{}", function.indentation());
            found.unsafe_fix(vec![function.insert_before(decorator)], say);
        } else {
            found.advice(say);
        }
    }
}

fn switches_to_eval(function: Code<'_>) -> bool {
    function
        .calls_inside()
        .any(|call| call.is_method("eval") && call.argument_count() == 0)
}

/// Something that was switched to evaluation is called in the loop.
fn calls_model(around: Code<'_>) -> bool {
    let models: Vec<&str> = around
        .body_around()
        .calls_inside()
        .filter(|call| call.is_method("eval"))
        .filter_map(|call| call.method_call().map(|(model, _)| model.text()))
        .collect();
    around.calls_inside().any(|call| {
        call.callee()
            .is_some_and(|callee| models.contains(&callee.text()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ndef evaluate(model, loader):\n    model.eval()\n    for x, y in loader:\n        out = model(x)\n    return out\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("evaluate.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).starts_with("import torch\n@torch.no_grad()\ndef evaluate"));
    }

    #[test]
    fn quiet() {
        let with = FIRES.replace("    for x, y", "    torch.set_grad_enabled(False)\n    for x, y");
        assert!(findings_of(ID, &[("evaluate.py", &with)]).is_empty());
        let caller = format!("{FIRES}with torch.inference_mode():\n    evaluate(m, d)\n");
        assert!(findings_of(ID, &[("evaluate.py", &caller)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let saliency = FIRES.replace("out = model(x)", "x.requires_grad_()\n        out = model(x)");
        assert!(findings_of(ID, &[("evaluate.py", &saliency)]).is_empty());
        let counting = FIRES.replace("out = model(x)", "out = len(x)");
        assert!(findings_of(ID, &[("evaluate.py", &counting)]).is_empty());
    }
}
