//! # gradients-zeroed
//!
//! ## What it detects
//! `zero_grad(set_to_none=False)` is called.
//!
//! ## Why it is slow
//! Every gradient is filled with zeros, and the backward pass adds to it: one more write and one more read of all gradients per step.
//! With `None`, the default, the first gradient is simply stored.
//!
//! ## Example
//! ```python
//! optimizer.zero_grad(set_to_none=False)
//! ```
//!
//! ## Use instead
//! ```python
//! optimizer.zero_grad()
//! ```
//!
//! ## Evidence
//! The argument is literally false.
//!
//! ## Fix
//! Omit the argument.
//!
//! ## Fix safety
//! `--fix --unsafe` writes `True`. It is unsafe because parameters without a gradient are then skipped by the optimizer instead of
//! being updated with a zero gradient.
//!
//! ## When it is wrong
//! A CUDA graph captures the backward pass into fixed gradient buffers, or the program reads `.grad` after zeroing.
//!
//! ## References
//! PyTorch documentation of `torch.optim.Optimizer.zero_grad`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>
//!
//! ---
//! ## 检测什么
//! `zero_grad(set_to_none=False)`。
//! ## 为什么慢
//! 每个梯度都先填零，反向传播再累加上去：每步对全部参数多写一遍、多读一遍。设为 `None`（默认）时，第一个梯度直接存入。
//! ## 证据
//! 参数明确写为 false。
//! ## 怎么改
//! 去掉这个参数。
//! ## 修改是否安全
//! `--fix --unsafe` 会写成 `True`。之所以不安全，是因为没有梯度的参数会被优化器跳过，而不是以零梯度更新。
//! ## 何时不成立
//! CUDA graph 把反向传播捕获到固定的梯度缓冲区，或代码在清零后读取 `.grad`。
//! ## 参考
//! PyTorch 文档 `torch.optim.Optimizer.zero_grad`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>

use crate::rules::prelude::*;

pub const ID: &str = "gradients-zeroed";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.is_method("zero_grad") {
            continue;
        }
        let Some(argument) = call
            .argument("set_to_none", 0)
            .filter(|argument| argument.as_boolean() == Some(false))
        else {
            continue;
        };
        // Gradients that are added to by hand must be there.
        if project.program_mentions(module, &["CUDAGraph", "cuda.graph", ".grad +=", ".grad.add_"]) {
            continue;
        }
        report
            .at(
                call,
                message!(
                    en: "gradients are filled with zeros at every step instead of being set to None",
                    zh: "每一步都把梯度填零，而不是直接丢弃"
                ),
            )
            .unsafe_fix(
                vec![argument.replace("True")],
                message!(en: "use `set_to_none=True` (the default)", zh: "使用默认的 `set_to_none=True`"),
            );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let code = "import torch\noptimizer.zero_grad(set_to_none=False)\n";
        assert_eq!(findings_of(ID, &[("train.py", code)]).len(), 1);
        assert!(edits_of(ID, code).contains("zero_grad(set_to_none=True)"));
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    "import torch\noptimizer.zero_grad()\noptimizer.zero_grad(set_to_none=True)\n"
                )]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        assert!(
            findings_of(
                ID,
                &[("train.py", "import torch\nbuffer.reset(set_to_none=False)\n")]
            )
            .is_empty()
        );
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    "import torch\ng = torch.cuda.CUDAGraph()\noptimizer.zero_grad(set_to_none=False)\n"
                )]
            )
            .is_empty()
        );
    }
}
