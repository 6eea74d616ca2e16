//! # loader-rebuilt
//!
//! ## What it detects
//! A `DataLoader` is rebuilt inside the loop over epochs.
//!
//! ## Why it is slow
//! Each new DataLoader starts its workers from scratch: processes, imports, dataset, queue. `persistent_workers` cannot help, because
//! the DataLoader itself is gone.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     loader = DataLoader(dataset, shuffle=True, num_workers=8)
//!     for x, y in loader:
//!         train_step(x, y)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, shuffle=True, num_workers=8, persistent_workers=True)
//! for epoch in range(epochs):
//!     for x, y in loader:
//!         train_step(x, y)
//! ```
//!
//! ## Evidence
//! The call is in the body of a loop over epochs that contains the training loop, outside any function defined there.
//!
//! ## Fix
//! Build the DataLoader once, before the loop. Shuffling and samplers give a new order at every epoch (`sampler.set_epoch(epoch)`).
//!
//! ## When it is wrong
//! The dataset really differs in each epoch (curricula, new negatives): change it inside the DataLoader, or suppress the finding on
//! this line.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data`, "Data Loading Order and Sampler".
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 在 epoch 循环里重新构建的 `DataLoader`。
//! ## 为什么慢
//! 每次 worker 都从零开始：进程、import、数据集、队列。`persistent_workers` 也没有用，因为 loader 本身已经不在了。
//! ## 证据
//! 调用位于包含训练循环的 epoch 循环体内，且不在其中定义的函数里。
//! ## 怎么改
//! 在循环之前只构建一次；shuffle 和 sampler 每个 epoch 自己会给出新的顺序（`sampler.set_epoch(epoch)`）。
//! ## 何时不成立
//! 每个 epoch 的数据集确实不同（课程学习、新的负样本）：改为在 loader 内部更换数据集，或对该行关闭规则。
//! ## 参考
//! PyTorch 文档 `torch.utils.data` “Data Loading Order and Sampler”。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::rules::prelude::*;

pub const ID: &str = "loader-rebuilt";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        let Some(around) = call.loop_around(LoopRole::Epoch) else {
            continue;
        };
        // Folds and tasks have their own data; epochs do not.
        if !counts_epochs(around) || depends_on_loop(call, around) {
            continue;
        }
        report
            .at(
                call.callee().unwrap_or(call),
                message!(
                    en: "the DataLoader is rebuilt in every epoch",
                    zh: "每个 epoch 都重新构建 DataLoader"
                ),
            )
            .advice(
                message!(en: "build the DataLoader once, before the loop", zh: "移到循环之前，只构建一次"),
            );
    }
}

fn counts_epochs(code: Code<'_>) -> bool {
    let Kind::For { target, iterator, .. } = code.kind() else {
        return false;
    };
    [*target, *iterator].into_iter().any(|id| {
        let text = code.at(id).text().to_ascii_lowercase();
        text.contains("epoch")
    })
}

/// The data set is made from something the loop computes.
fn depends_on_loop(call: Code<'_>, around: Code<'_>) -> bool {
    let names = call.subtree().filter(|code| matches!(code.kind(), Kind::Name));
    names.into_iter().any(|name| {
        name.own_bindings()
            .iter()
            .any(|one| around.tree().contains(around.id, one.at) && one.at != call.statement().id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import DataLoader\nfor epoch in range(9):\n    loader = DataLoader(data, shuffle=True)\n    for x in loader:\n        model(x).backward()\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 4);
    }

    #[test]
    fn quiet() {
        let before = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data)\nfor epoch in range(9):\n    for x in loader:\n        model(x).backward()\n";
        assert!(findings_of(ID, &[("train.py", before)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let folds = FIRES.replace("epoch in range(9)", "fold in range(9)");
        assert!(findings_of(ID, &[("train.py", &folds)]).is_empty());
        let curriculum = FIRES.replace("DataLoader(data,", "DataLoader(pick(data, epoch),");
        assert!(findings_of(ID, &[("train.py", &curriculum)]).is_empty());
    }
}
