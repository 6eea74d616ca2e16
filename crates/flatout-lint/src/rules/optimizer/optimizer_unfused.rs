//! # optimizer-unfused
//!
//! ## What it detects
//! PyTorch's `Adam`, `AdamW` or `SGD` is used without `fused=True`, in a program that trains on CUDA.
//!
//! ## Why it is slow
//! Without `fused=True` the update runs as several kernels over the parameters; fused, it is a single one. For small models, where
//! launching kernels takes most of the time, the update is a large part of the step.
//!
//! ## Example
//! ```python
//! optimizer = torch.optim.AdamW(model.parameters())
//! ```
//!
//! ## Use instead
//! ```python
//! optimizer = torch.optim.AdamW(model.parameters(), fused=True)
//! ```
//!
//! ## Evidence
//! The call sets none of `fused`, `foreach`, `capturable` and `differentiable`; the last three exclude `fused`.
//!
//! ## Fix
//! Add `fused=True`.
//!
//! ## Fix safety
//! `--fix --unsafe` adds `fused=True`. It is unsafe because results can differ in the last digits.
//!
//! ## When it is wrong
//! The parameters are on the CPU with an old PyTorch, or another optimizer wraps this one and needs the plain form.
//!
//! ## References
//! PyTorch documentation of `torch.optim.AdamW`, parameter `fused`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上训练的程序中，PyTorch 的 `Adam`、`AdamW` 或 `SGD` 没有 `fused=True`。
//! ## 为什么慢
//! 没有它，更新要用多个 kernel 遍历参数；fused 只用一个。对于以下发为主要开销的小模型，更新占一步的很大比例。
//! ## 证据
//! 调用中没有 `fused`、`foreach`，也没有与之互斥的 `capturable` 或 `differentiable`。
//! ## 怎么改
//! 加上 `fused=True`。
//! ## 修改是否安全
//! `--fix --unsafe` 会加上 `fused=True`。之所以不安全，是因为结果的最后几位可能不同。
//! ## 何时不成立
//! 旧版 PyTorch 上参数在 CPU，或优化器被需要普通形式的包装器包装。
//! ## 参考
//! `torch.optim.AdamW` 的参数 `fused`；flatout 在一块 H200 上的实测见规则 `launch-bound`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>

use crate::rules::prelude::*;

pub const ID: &str = "optimizer-unfused";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

const OPTIMIZERS: [&str; 6] = [
    "torch.optim.Adam",
    "torch.optim.AdamW",
    "torch.optim.SGD",
    "torch.optim.adam.Adam",
    "torch.optim.adamw.AdamW",
    "torch.optim.sgd.SGD",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.calls_one_of(&OPTIMIZERS) || call.splats() || !project.uses_cuda(module) {
            continue;
        }
        let decided = ["fused", "foreach", "capturable", "differentiable"];
        if decided.iter().any(|name| call.keyword(name).is_some()) {
            continue;
        }
        let name = call.callee().map_or("", Code::text);
        let found = report.at(
            call.callee().unwrap_or(call),
            message!(en: "`{name}` without `fused=True`: each update launches several kernels instead of one", zh: "`{name}` 没有 `fused=True`：参数更新要启动多个 kernel 而不是一个"),
        );
        match call.set_keyword("fused", "True") {
            Some(edit) => found.unsafe_fix(
                vec![edit],
                message!(en: "add `fused=True`", zh: "加上 `fused=True`"),
            ),
            None => found.advice(message!(en: "add `fused=True`", zh: "加上 `fused=True`")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let code = "from torch.optim import AdamW\nmodel.cuda()\nopt = AdamW(\n    model.parameters(),\n    lr=1e-3,  # tuned\n)\n";
        assert_eq!(findings_of(ID, &[("train.py", code)]).len(), 1);
        let expected = "from torch.optim import AdamW\nmodel.cuda()\nopt = AdamW(\n    model.parameters(),\n    lr=1e-3,\n    fused=True,  # tuned\n)\n";
        assert_eq!(edits_of(ID, code), expected);
        let line =
            "import torch.optim as optim\nmodel.cuda()\nopt = optim.SGD((model.parameters()), lr=(0.1))\n";
        assert!(edits_of(ID, line).contains("lr=(0.1), fused=True)"));
        assert_eq!(findings_of(ID, &[("train.py", line)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let code = "import torch\nmodel.cuda()\nopt = torch.optim.AdamW(p, fused=True)\nother = torch.optim.Adam(p, foreach=True)\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
        let cpu = "import torch\nopt = torch.optim.AdamW(p)\n";
        assert!(findings_of(ID, &[("train.py", cpu)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let code = "import torch\nfrom mine import AdamW\nmodel.cuda()\na = AdamW(p)\nb = torch.optim.AdamW(p, **options)\nc = torch.optim.RMSprop(p)\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }
}
