//! # checkpoint-every-step
//!
//! ## What it detects
//! `torch.save(…)` is called at every step of a training loop.
//!
//! ## Why it is slow
//! The weights are copied to the CPU and written to disk while the GPU waits: seconds for a large model, at every step.
//!
//! ## Example
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     train_step(x, y)
//!     torch.save(model.state_dict(), "last.pt")
//! ```
//!
//! ## Use instead
//! ```python
//! for step, (x, y) in enumerate(loader):
//!     train_step(x, y)
//!     if step % 5000 == 0:
//!         torch.save(model.state_dict(), "last.pt")
//! ```
//!
//! ## Evidence
//! Every step reaches the call, without an interval.
//!
//! ## Fix
//! Save every N steps or once per epoch, or save a copy from a background thread.
//!
//! ## When it is wrong
//! A step is itself an epoch (a loop over files or tasks).
//!
//! ## References
//! PyTorch documentation, "Asynchronous Saving with Distributed Checkpoint".
//! <https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都 `torch.save(…)`。
//! ## 为什么慢
//! 每一步都要把权重拷到主机并写盘，其间 GPU 等待：大模型要几秒。
//! ## 证据
//! 调用位于每一步的路径上，没有间隔条件。
//! ## 怎么改
//! 每若干步或每个 epoch 保存一次，或用副本在后台线程中保存。
//! ## 何时不成立
//! 一步本身就是一个 epoch（遍历文件或任务的循环）。
//! ## 参考
//! PyTorch 文档“Asynchronous Saving with Distributed Checkpoint”。
//! <https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html>

use crate::rules::prelude::*;

pub const ID: &str = "checkpoint-every-step";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in project.hot_calls(module) {
        if hot != Hot::Step || !call.calls("torch.save") || is_best_only(call) {
            continue;
        }
        // Batches come from a loader; a loop over anything else may be a loop over epochs.
        let over_loader = call
            .loop_around(LoopRole::Step)
            .and_then(Code::iterator)
            .is_some_and(Code::is_loader);
        if !over_loader {
            continue;
        }
        report
            .at(
                call,
                message!(en: "a checkpoint is saved at every step", zh: "每一步都写一次检查点"),
            )
            .advice(message!(
                en: "save every N steps, or once per epoch",
                zh: "每隔若干步或每个 epoch 保存一次"
            ));
    }
}

/// `if loss < best:` and other conditions.
fn is_best_only(call: Code<'_>) -> bool {
    call.ancestors()
        .take_while(|above| !above.is_loop() && above.as_function().is_none())
        .any(|above| matches!(above.kind(), Kind::If(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor x in train_loader:\n    model(x).backward()\n    torch.save(model.state_dict(), 'last.pt')\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let interval = FIRES.replace("    torch.save", "    if step % 1000 == 0: torch.save");
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("    torch.save", "torch.save"))]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        let best = FIRES.replace("    torch.save", "    if loss < best: torch.save");
        assert!(findings_of(ID, &[("train.py", &best)]).is_empty());
        let epochs = FIRES.replace("x in train_loader", "epoch in range(9)");
        assert!(findings_of(ID, &[("train.py", &epochs)]).is_empty());
    }
}
