//! # sync-in-evaluation
//!
//! ## What it detects
//! `.item()`, `.cpu()`, `.numpy()` or `.tolist()` is called for every batch of an evaluation or prediction loop.
//!
//! ## Why it is slow
//! Each call makes the CPU wait for the batch just queued, so copying, computing and preparing the next batch run one after another.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     correct += (model(x).argmax(1) == y).sum().item()
//! ```
//!
//! ## Use instead
//! ```python
//! correct = torch.zeros((), device="cuda")
//! for x, y in loader:
//!     correct += (model(x).argmax(1) == y).sum()
//! correct = correct.item()
//! ```
//!
//! ## Evidence
//! The call is in the body of a loop over a DataLoader, in a function that evaluates or predicts, in a program that uses CUDA. It is
//! reported once per loop.
//!
//! ## Fix
//! Accumulate sums and counts on the GPU, collect predictions in a list of GPU tensors, and copy once after the loop.
//!
//! ## When it is wrong
//! The predictions are too large to keep on the GPU: copy with `non_blocking=True` into pinned memory then.
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 评估或预测循环的每个 batch 都调用 `.item()`、`.cpu()`、`.numpy()` 或 `.tolist()`。
//! ## 为什么慢
//! 每次都让 CPU 等刚下发的 batch，于是拷贝、计算和准备下一个 batch 先后进行。
//! ## 证据
//! 调用位于评估或预测函数中遍历 loader 的循环体内，程序使用 CUDA。每个循环只报告一次。
//! ## 怎么改
//! 在设备上累加和与计数，把预测值收集到设备张量的列表中，循环之后拷一次。
//! ## 何时不成立
//! 预测值太大，GPU 放不下：用 `non_blocking=True` 拷到锁页内存。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use super::host_copy_in_step::{copies, is_inner};
use crate::rules::prelude::*;

pub const ID: &str = "sync-in-evaluation";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let mut told: Vec<NodeId> = Vec::new();
    for (call, hot) in cuda_step_calls(project, module) {
        let Some((receiver, method)) = call.method_call() else {
            continue;
        };
        let Some(around) = call.loop_around(LoopRole::Evaluation) else {
            continue;
        };
        let syncs = match method {
            "item" => call.argument_count() == 0 && !from_host(receiver),
            _ => copies(call, receiver, method) && !is_inner(call),
        };
        if hot != Hot::Evaluation || !syncs || told.contains(&around.id) {
            continue;
        }
        told.push(around.id);
        let text = call.brief();
        let found = report.at(
            call,
            message!(en: "`{text}` makes the CPU wait for the GPU at every evaluation batch", zh: "`{text}` 使 CPU 在评估的每个 batch 都等待 GPU"),
        );
        found.advice(message!(
            en: "accumulate on the GPU and read the result once after the loop",
            zh: "在 GPU 上累加，循环结束后只读取一次"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ndef evaluate(model, loader):\n    model.cuda()\n    correct = 0\n    with torch.no_grad():\n        for x, y in loader:\n            out = model(x.cuda())\n            correct += (out.argmax(1) == y).sum().item()\n            seen = y.size(0)\n    return correct\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("evaluate.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 8);
    }

    #[test]
    fn quiet() {
        let device = FIRES
            .replace(".item()", "")
            .replace("return correct", "return correct.item()");
        assert!(findings_of(ID, &[("evaluate.py", &device)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // A loop over words, not over batches.
        let words = FIRES.replace("for x, y in loader", "for x, y in pairs");
        assert!(findings_of(ID, &[("evaluate.py", &words)]).is_empty());
    }
}
