//! # autocast-around-backward
//!
//! ## What it detects
//! `.backward()` is called inside `with torch.autocast(…)`.
//!
//! ## Why it is slow
//! The backward pass uses the dtypes that the forward pass chose. Autocast only adds its checks, and keeps its cache of cast weights
//! alive for longer. PyTorch recommends against it; with custom autograd functions it produces wrong dtypes.
//!
//! ## Example
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//!     loss.backward()
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! ```
//!
//! ## Evidence
//! The call is in the body of the `with` block.
//!
//! ## Fix
//! End the `with` block once the loss is computed.
//!
//! ## When it is wrong
//! It is never faster; at best it is harmless.
//!
//! ## References
//! PyTorch documentation of `torch.autocast`: "Backward passes under autocast are not recommended".
//! <https://docs.pytorch.org/docs/stable/amp.html>
//!
//! ---
//! ## 检测什么
//! 在 `with torch.autocast(…)` 内调用 `.backward()`。
//! ## 为什么慢
//! 反向传播使用前向选择的类型；autocast 只是多了检查，并让转换后权重的缓存存活更久。PyTorch 不推荐这样做；配合自定义函数会得到错误的类型。
//! ## 证据
//! 调用位于 `with` 的语句体内。
//! ## 怎么改
//! 计算完损失就结束 `with`。
//! ## 何时不成立
//! 从没有收益；最多无害。
//! ## 参考
//! PyTorch 文档 `torch.autocast`：“Backward passes under autocast are not recommended”。
//! <https://docs.pytorch.org/docs/stable/amp.html>

use crate::rules::prelude::*;

pub const ID: &str = "autocast-around-backward";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

pub(crate) const AUTOCAST: [&str; 4] = [
    "torch.autocast",
    "torch.amp.autocast",
    "torch.cuda.amp.autocast",
    "torch.amp.autocast_mode.autocast",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.is_method("backward") {
            continue;
        }
        let around = call
            .ancestors()
            .take_while(|above| above.as_function().is_none())
            .find(|above| is_autocast(*above));
        if let Some(around) = around {
            report
                .at(
                    call,
                    message!(en: "the backward pass runs inside autocast", zh: "反向传播放在了 autocast 内部"),
                )
                .see(around.place())
                .advice(message!(en: "end the `with` block once the loss is computed", zh: "在算完损失后就结束 `with`"));
        }
    }
}

fn is_autocast(code: Code<'_>) -> bool {
    match code.kind() {
        Kind::With { items, .. } => items
            .iter()
            .any(|(context, _)| code.at(*context).calls_one_of(&AUTOCAST)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor x in loader:\n    with torch.autocast('cuda'):\n        loss = model(x)\n        loss.backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let after = FIRES.replace("        loss.backward()", "    loss.backward()");
        assert!(findings_of(ID, &[("train.py", &after)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let other = FIRES.replace("torch.autocast('cuda')", "profiler.record('step')");
        assert!(findings_of(ID, &[("train.py", &other)]).is_empty());
    }
}
