//! # evaluation-every-epoch
//!
//! ## What it detects
//! A function that evaluates on a whole DataLoader is called at each of many epochs, without an interval.
//!
//! ## Why it is slow
//! Trainings with many epochs usually have short ones, and a pass over the validation data after each of them can take a large part
//! of the time. Evaluating every 5 epochs usually selects a model that is just as good.
//!
//! ## Example
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     validate(model, validation_loader)
//! ```
//!
//! ## Use instead
//! ```python
//! for epoch in range(epochs):
//!     train_epoch(model, loader)
//!     if epoch % 5 == 0 or epoch == epochs - 1:
//!         validate(model, validation_loader)
//! ```
//!
//! ## Evidence
//! The call is in a loop of at least 20 epochs, without a condition. This is informational: a recorded run measures its share.
//!
//! ## Fix
//! Evaluate with `if epoch % 5 == 0:`, and once more after the last epoch.
//!
//! ## When it is wrong
//! Early stopping or a plateau scheduler needs a score after every epoch, or epochs are so long that evaluation does not matter.
//!
//! ## References
//! `flatout train` evaluates every 5 epochs by default.
//! See also `evaluation-too-often` and `evaluation-every-step`.
//! <https://huggingface.co/docs/transformers/main_classes/trainer>
//!
//! ---
//! ## 检测什么
//! 在很多个 epoch 中，每个 epoch 都调用在整个 loader 上评估的函数，没有间隔。
//! ## 为什么慢
//! epoch 多的训练，每个 epoch 一般都很短，每次之后再遍历一遍验证数据会占不少时间。每 5 个 epoch 评估一次，通常也能选出同样好的模型。
//! ## 证据
//! 调用位于至少 20 个 epoch 的循环中，没有条件。只作提示：运行记录会测出其占比。
//! ## 怎么改
//! 外加 `if epoch % 5 == 0:`，最后一个 epoch 之后再来一次。
//! ## 何时不成立
//! 早停或按平台期调整学习率需要每个 epoch 的分数，或 epoch 很长，评估看不出来。
//! ## 参考
//! `flatout train` 默认每 5 个 epoch 评估一次。
//! 另见 `evaluation-too-often`、`evaluation-every-step`。
//! <https://huggingface.co/docs/transformers/main_classes/trainer>

use crate::rules::prelude::*;

pub const ID: &str = "evaluation-every-epoch";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        let Some(function) = call.target().filter(|target| target.as_function().is_some()) else {
            continue;
        };
        if !project.flow().evaluates(function) || is_needed(call) {
            continue;
        }
        let Some(epochs) = many_epochs_of(call) else {
            continue;
        };
        let text = call.callee().map_or("", Code::text);
        report
            .at(
                call,
                message!(
                    en: "`{text}` evaluates after each of the {epochs} epochs",
                    zh: "`{text}` 在 {epochs} 个 epoch 的每一个之后都做评估"
                ),
            )
            .see(function.place())
            .advice(message!(
                en: "evaluate every 5 epochs and after the last one; `flatout run` measures how much that \
                saves",
                zh: "每 5 个 epoch 以及最后一个之后再评估；`flatout run` 会测出能省多少时间"
            ));
    }
}

/// The score decides something at every epoch: `scheduler.step(score)`, early stopping.
fn is_needed(call: Code<'_>) -> bool {
    let Some(around) = epoch_of(call) else {
        return false;
    };
    let stops = around.subtree().any(|code| matches!(code.kind(), Kind::Break));
    let plateau = around.calls_inside().any(|other| {
        other.is_method("step")
            && other.positional(0).is_some()
            && other
                .method_call()
                .is_some_and(|(receiver, _)| receiver.text().to_ascii_lowercase().contains("sched"))
    });
    stops || plateau
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ndef validate(model, loader):\n    for x in loader:\n        model(x)\nfor epoch in range(100):\n    for x in train_loader:\n        model(x).backward()\n    validate(model, val_loader)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 8);
        let counted = FIRES
            .replace("range(100)", "range(1, epochs + 1)")
            .replace("for epoch", "epochs = 50\nfor epoch");
        assert_eq!(findings_of(ID, &[("train.py", &counted)]).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("    validate(", "    if epoch % 5 == 0: validate(")
                )]
            )
            .is_empty()
        );
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("range(100)", "range(5)"))]).is_empty());
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("range(100)", "range(count)"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        for needed in ["    if score > 3: break\n", "    scheduler.step(score)\n"] {
            assert!(
                findings_of(ID, &[("train.py", &format!("{FIRES}{needed}"))]).is_empty(),
                "{needed}"
            );
        }
    }
}
