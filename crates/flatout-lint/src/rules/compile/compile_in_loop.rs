//! # compile-in-loop
//!
//! ## What it detects
//! `torch.compile(…)` is called inside the training loop or the loop over epochs.
//!
//! ## Why it is slow
//! Each call creates a new compiled function, which is traced and possibly compiled again: seconds to minutes every time.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     compiled = torch.compile(model)
//!     train_epoch(compiled, loader)
//! ```
//!
//! ## Use instead
//! ```python
//! compiled = torch.compile(model)
//! for epoch in range(epochs):
//!     train_epoch(compiled, loader)
//! ```
//!
//! ## Evidence
//! The call is in the body of a training loop or of a loop over epochs.
//!
//! ## Fix
//! Compile the model once, before the loops.
//!
//! ## When it is wrong
//! A loop over several models or folds. flatout reports only loops over epochs and steps.
//!
//! ## References
//! PyTorch documentation, "torch.compiler: Frequently Asked Questions".
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>
//!
//! ---
//! ## 检测什么
//! 训练循环或 epoch 循环里的 `torch.compile(…)`。
//! ## 为什么慢
//! 每次调用都会生成新的编译函数，重新追踪，可能重新编译：每次几秒到几分钟。
//! ## 证据
//! 调用位于步循环或 epoch 循环的循环体内。
//! ## 怎么改
//! 在循环之前编译一次。
//! ## 何时不成立
//! 遍历多个模型或多折的循环：只有 epoch 循环和步循环才算。
//! ## 参考
//! PyTorch 文档“torch.compiler: Frequently Asked Questions”。
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>

use crate::rules::prelude::*;

pub const ID: &str = "compile-in-loop";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.calls("torch.compile") {
            continue;
        }
        let in_step = call.loop_around(LoopRole::Step).is_some();
        let in_epoch = call.loop_around(LoopRole::Epoch).is_some_and(|around| {
            matches!(around.kind(), Kind::For { target, .. } if around.at(*target).text().contains("epoch"))
        });
        if in_step || in_epoch {
            report
                .at(call, message!(en: "`torch.compile` is called again in every iteration of the loop", zh: "`torch.compile` 在循环里反复执行"))
                .advice(message!(en: "compile the model once, before the loop", zh: "移到循环之前，只编译一次"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor epoch in range(3):\n    fast = torch.compile(model)\n    for x in loader:\n        fast(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        let step = "import torch\nfor x in loader:\n    torch.compile(model)(x).backward()\n";
        assert_eq!(findings_of(ID, &[("train.py", step)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let before = "import torch\nfast = torch.compile(model)\nfor x in loader:\n    fast(x).backward()\n";
        assert!(findings_of(ID, &[("train.py", before)]).is_empty());
    }

    #[test]
    fn look_alike() {
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("epoch in range(3)", "fold in range(3)")
                )]
            )
            .is_empty()
        );
        let regular = FIRES
            .replace("import torch", "import torch, re")
            .replace("torch.compile(model)", "re.compile('x')");
        assert!(findings_of(ID, &[("train.py", &regular)]).is_empty());
    }
}
