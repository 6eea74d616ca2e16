//! # checkpoint-every-epoch
//!
//! ## What it detects
//! `torch.save(…)` is called at each of many epochs, without an interval or a condition.
//!
//! ## Why it is slow
//! The weights, and often an optimizer state of twice their size, are copied to the CPU and written to disk while the GPU waits.
//! Trainings with many epochs usually have short ones.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     torch.save(model.state_dict(), f"epoch{epoch}.pt")
//! ```
//!
//! ## Use instead
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     if epoch % 5 == 0 or epoch == epochs - 1:
//!         torch.save(model.state_dict(), f"epoch{epoch}.pt")
//! ```
//!
//! ## Evidence
//! The call is in a loop of at least 20 epochs, without a condition. This is informational: a recorded run measures its share.
//!
//! ## Fix
//! Save every 5 epochs and after the last one, and save the best model when the score improves.
//!
//! ## When it is wrong
//! Epochs are long, or every epoch must be resumable.
//!
//! ## References
//! `flatout train` saves every 5 epochs by default.
//! <https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html>
//!
//! ---
//! ## 检测什么
//! 在很多个 epoch 中，每个 epoch 都 `torch.save(…)`，没有间隔，也没有条件。
//! ## 为什么慢
//! 权重（往往还有两倍于它的优化器状态）要拷到主机并写盘，其间 GPU 等待。epoch 多的训练，每个 epoch 一般都很短。
//! ## 证据
//! 调用位于至少 20 个 epoch 的循环中，没有条件。只作提示：运行记录会测出其占比。
//! ## 怎么改
//! 每五个 epoch 和最后一个之后保存，分数提高时保存最好的。
//! ## 何时不成立
//! epoch 很长，或每个 epoch 都必须能恢复。
//! ## 参考
//! `flatout train` 默认每 5 个 epoch 保存一次。
//! <https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html>

use crate::rules::prelude::*;

pub const ID: &str = "checkpoint-every-epoch";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project
        .torch_calls(module)
        .filter(|call| call.calls("torch.save"))
    {
        let Some(epochs) = many_epochs_of(call) else {
            continue;
        };
        report
            .at(
                call,
                message!(
                    en: "a checkpoint is saved after each of the {epochs} epochs",
                    zh: "{epochs} 个 epoch 的每一个之后都写一次检查点"
                ),
            )
            .advice(message!(
                en: "save every 5 epochs and after the last one, and save the best model when the score \
                improves",
                zh: "每 5 个 epoch 以及最后一个之后保存，另在指标变好时保存最佳模型"
            ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor epoch in range(100):\n    for x in train_loader:\n        model(x).backward()\n    torch.save(model.state_dict(), 'last.pt')\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 5);
    }

    #[test]
    fn quiet() {
        let interval = FIRES.replace("    torch.save", "    if epoch % 10 == 0: torch.save");
        assert!(findings_of(ID, &[("train.py", &interval)]).is_empty());
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("range(100)", "range(3)"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        let best = FIRES.replace("    torch.save", "    if score > best: torch.save");
        assert!(findings_of(ID, &[("train.py", &best)]).is_empty());
        // After the training, once.
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("    torch.save", "torch.save"))]
            )
            .is_empty()
        );
    }
}
