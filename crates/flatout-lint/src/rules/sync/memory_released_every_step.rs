//! # memory-released-every-step
//!
//! ## What it detects
//! `torch.cuda.empty_cache()`, possibly with `gc.collect()`, is called at every step of a training loop.
//!
//! ## Why it is slow
//! It waits for the GPU and returns all cached memory to the driver. The next step requests it again with `cudaMalloc`, which takes
//! milliseconds each time. It does not prevent out-of-memory errors: the allocator empties its cache on its own before it fails.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     torch.cuda.empty_cache()
//! ```
//!
//! ## Use instead
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Evidence
//! Every step reaches the call, without an interval.
//!
//! ## Fix
//! Remove it. Against fragmentation, set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
//!
//! ## Fix safety
//! `--fix` removes the call if it is the only statement on its line. It is safe: results stay the same.
//!
//! ## When it is wrong
//! Another process needs the GPU's memory between steps.
//!
//! ## References
//! PyTorch documentation, "CUDA semantics: Memory management".
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都调用 `torch.cuda.empty_cache()`（或同时调用 `gc.collect()`）。
//! ## 为什么慢
//! 它要等 GPU，并把全部缓存的显存还给驱动；下一步又要用 `cudaMalloc` 重新申请，每次几毫秒。它也不能防止显存不足：分配器在失败之前自己会清空缓存。
//! ## 证据
//! 调用位于每一步的路径上，没有间隔条件。
//! ## 怎么改
//! 去掉它。针对碎片请设置 `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`。
//! ## 修改是否安全
//! 如果该调用独占一行，`--fix` 会删除它。这是安全的：结果不变。
//! ## 何时不成立
//! 另一个进程在两步之间需要 GPU 显存。
//! ## 参考
//! PyTorch 文档“CUDA semantics: Memory management”。
//! <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>

use super::synchronize_in_step::has_neighbours;
use crate::rules::prelude::*;

pub const ID: &str = "memory-released-every-step";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in project.hot_calls(module) {
        if !call.calls("torch.cuda.empty_cache") {
            continue;
        }
        let every = match hot {
            Hot::Step => message!(en: "at every step", zh: "在每一步"),
            Hot::Evaluation => message!(en: "for every evaluation batch", zh: "在评估的每个 batch"),
        };
        let title = flatout_core::Message {
            en: format!(
                "the CUDA memory cache is emptied {} and then allocated again",
                every.en
            ),
            zh: format!("{}都清空显存缓存，随后又重新分配", every.zh),
        };
        let found = report.at(call, title);
        if hot == Hot::Evaluation {
            found.severity(Severity::Warning);
        }
        let say = message!(en: "remove it: the allocator frees cached memory on its own before it runs out", zh: "删除它：分配器在失败之前会自行释放缓存");
        let alone = call.statement();
        let removable = matches!(alone.kind(), Kind::Expression(_)) && has_neighbours(alone);
        match alone.remove_line().filter(|_| removable) {
            Some(edit) => found.safe_fix(vec![edit], say),
            None => found.advice(say),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    torch.cuda.empty_cache()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(!edits_of(ID, FIRES).contains("empty_cache"));
    }

    #[test]
    fn quiet() {
        let after = FIRES.replace("    torch.cuda.empty_cache()", "torch.cuda.empty_cache()");
        assert!(findings_of(ID, &[("train.py", &after)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let on_failure = FIRES.replace(
            "    loss.backward()\n    torch.cuda.empty_cache()",
            "    try:\n        loss.backward()\n    except RuntimeError:\n        torch.cuda.empty_cache()",
        );
        assert!(findings_of(ID, &[("train.py", &on_failure)]).is_empty());
    }
}
