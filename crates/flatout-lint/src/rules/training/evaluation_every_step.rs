//! # evaluation-every-step
//!
//! ## What it detects
//! A function that evaluates on a whole DataLoader is called at every step of a training loop.
//!
//! ## Why it is slow
//! Each training step is followed by a pass over the validation data, so almost all of the time goes to evaluation.
//!
//! ## Example
//! ```python
//! for x, y in loader:
//!     train_step(x, y)
//!     validate(model, validation_loader)
//! ```
//!
//! ## Use instead
//! ```python
//! for epoch in range(epochs):
//!     for x, y in loader:
//!         train_step(x, y)
//!     validate(model, validation_loader)
//! ```
//!
//! ## Evidence
//! The call is in a loop over a DataLoader, without a condition, and the called function contains an evaluation loop.
//!
//! ## Fix
//! Evaluate once per epoch or every N steps.
//!
//! ## When it is wrong
//! The evaluation DataLoader is tiny on purpose.
//!
//! ## References
//! The rule `evaluation-too-often` measures the share of evaluation in a run.
//! See also `evaluation-too-often` and `evaluation-every-epoch`.
//! <https://huggingface.co/docs/transformers/main_classes/trainer>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都调用在整个 loader 上评估的函数。
//! ## 为什么慢
//! 每一步之后都遍历一遍验证数据：几乎所有时间都花在评估上。
//! ## 证据
//! 调用位于遍历 loader 的循环中，没有条件，且被调用的函数含有评估循环。
//! ## 怎么改
//! 每个 epoch 或每若干步评估一次。
//! ## 何时不成立
//! 评估用的 loader 有意做得很小。
//! ## 参考
//! 规则 `evaluation-too-often` 在运行中测量评估所占的时间。
//! 另见 `evaluation-too-often`、`evaluation-every-epoch`。
//! <https://huggingface.co/docs/transformers/main_classes/trainer>

use crate::rules::prelude::*;

pub const ID: &str = "evaluation-every-step";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for (call, hot) in project.hot_calls(module) {
        let Some(function) = call.target().filter(|target| target.as_function().is_some()) else {
            continue;
        };
        if hot != Hot::Step || !project.flow().evaluates(function) || has_condition(call) {
            continue;
        }
        let Some(around) = call.loop_around(LoopRole::Step) else {
            continue;
        };
        if !around.iterator().is_some_and(Code::is_loader) {
            continue;
        }
        let text = call.callee().map_or("", Code::text);
        report
            .at(call, message!(en: "`{text}` runs a full evaluation at every step", zh: "`{text}` 在每一步都做一次完整评估"))
            .see(function.place())
            .advice(message!(en: "evaluate once per epoch or every N steps", zh: "每个 epoch 或每隔若干步评估一次"));
    }
}

fn has_condition(call: Code<'_>) -> bool {
    call.ancestors()
        .take_while(|above| !above.is_loop())
        .any(|above| matches!(above.kind(), Kind::If(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ndef validate(model, loader):\n    for x in loader:\n        model(x)\nfor x in train_loader:\n    model(x).backward()\n    validate(model, val_loader)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 7);
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("    validate(", "validate("))]).is_empty());
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("    validate(", "    if step % 500 == 0: validate(")
                )]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        // Validates its arguments, not the model.
        let arguments = FIRES.replace("    for x in loader:\n        model(x)\n", "    assert model\n");
        assert!(findings_of(ID, &[("train.py", &arguments)]).is_empty());
    }
}
