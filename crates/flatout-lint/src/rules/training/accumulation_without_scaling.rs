//! # accumulation-without-scaling
//!
//! ## What it detects
//! Gradients are accumulated (`if (step + 1) % accumulation == 0: optimizer.step()`), but the loss is not divided by the number of
//! accumulated batches.
//!
//! ## Why it is slow
//! The gradient is too large by the number of accumulated batches. Training then needs a smaller learning rate, or diverges and must
//! be repeated.
//!
//! ## Example
//! ```python
//! loss.backward()
//! if (step + 1) % accumulation == 0:
//!     optimizer.step()
//!     optimizer.zero_grad()
//! ```
//!
//! ## Use instead
//! ```python
//! (loss / accumulation).backward()
//! if (step + 1) % accumulation == 0:
//!     optimizer.step()
//!     optimizer.zero_grad()
//! ```
//!
//! ## Evidence
//! The optimizer steps at an interval named after accumulation, `backward()` runs for every batch, and nothing in the loop divides by
//! that number.
//!
//! ## Fix
//! Use `(loss / accumulation).backward()`.
//!
//! ## When it is wrong
//! The loss is already a mean over the accumulated batches, or a library divides it (Accelerate does).
//!
//! ## References
//! PyTorch documentation, "Automatic Mixed Precision examples: Gradient accumulation".
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation>
//!
//! ---
//! ## 检测什么
//! 梯度累积（`if (step + 1) % accumulation == 0: optimizer.step()`）的损失没有除以累积的步数。
//! ## 为什么慢
//! 累积多少步，梯度就大多少倍。训练因此需要更小的学习率，或发散而重跑。
//! ## 证据
//! 优化器在以累积命名的间隔之后才更新，每一步都运行 `backward()`，而循环中没有任何东西除以该数。
//! ## 怎么改
//! `(loss / accumulation).backward()`。
//! ## 何时不成立
//! 损失已经是累积 batch 的均值，或由库来除（Accelerate 会除）。
//! ## 参考
//! PyTorch 文档“Automatic Mixed Precision examples: Gradient accumulation”。
//! <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation>

use crate::rules::prelude::*;

pub const ID: &str = "accumulation-without-scaling";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for around in project.flow().loops(project, module, LoopRole::Step) {
        let Some(backward) = around.calls_inside().find(|call| is_plain_backward(*call)) else {
            continue;
        };
        let steps = around
            .calls_inside()
            .filter(|call| call.is_method("step") && !call.text().contains("scheduler"));
        let Some(count) = steps
            .into_iter()
            .find_map(|call| accumulation_around(call, around))
        else {
            continue;
        };
        if divides(around.body_around(), count)
            || project.program_mentions(module, &["Accelerator", "deepspeed"])
        {
            continue;
        }
        let text = backward.brief();
        report
            .at(
                backward,
                message!(
                    en: "`{text}` is not divided by `{count}`: accumulated gradients are that many times too \
                    large",
                    zh: "`{text}` 没有除以 `{count}`：累积的梯度会大同样的倍数"
                ),
            )
            .confidence(Confidence::Medium)
            .advice(
                message!(en: "call backward on `loss / {count}`", zh: "对 `loss / {count}` 调用 backward"),
            );
    }
}

/// `loss.backward()`, not behind the interval itself.
fn is_plain_backward(call: Code<'_>) -> bool {
    call.is_method("backward") && call.hot() == Some(Hot::Step)
}

/// The `accumulation` of `if (step + 1) % accumulation == 0:` around the optimizer's step.
fn accumulation_around<'p>(call: Code<'p>, around: Code<'p>) -> Option<&'p str> {
    call.ancestors()
        .take_while(|above| *above != around)
        .find_map(|above| {
            let Kind::If(clauses) = above.kind() else {
                return None;
            };
            let tests = clauses.iter().filter_map(|(test, _)| *test);
            tests
                .flat_map(|test| above.at(test).subtree())
                .find_map(|code| match code.kind() {
                    Kind::Binary {
                        operator: Operator::Modulo,
                        right,
                        ..
                    } => {
                        let right = code.at(*right);
                        right
                            .text()
                            .to_ascii_lowercase()
                            .contains("accum")
                            .then(|| right.text())
                    }
                    _ => None,
                })
        })
}

/// Something is divided (or multiplied by a fraction) in the function, by a name about accumulation.
fn divides(body: Code<'_>, count: &str) -> bool {
    let about = |code: Code<'_>| {
        let text = code.text();
        text.contains(count) || text.to_ascii_lowercase().contains("accum")
    };
    body.subtree().any(|code| match code.kind() {
        Kind::Binary {
            operator: Operator::Divide | Operator::Multiply,
            right,
            ..
        } => about(code.at(*right)),
        Kind::AugmentedAssign {
            operator: Operator::Divide | Operator::Multiply,
            value,
            ..
        } => about(code.at(*value)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfor step, x in enumerate(loader):\n    loss = model(x)\n    loss.backward()\n    if (step + 1) % accum_steps == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 4);
    }

    #[test]
    fn quiet() {
        for line in [
            "    loss = model(x) / accum_steps",
            "    loss = model(x)\n    loss /= accum_steps",
        ] {
            assert!(findings_of(ID, &[("train.py", &FIRES.replace("    loss = model(x)", line))]).is_empty());
        }
    }

    #[test]
    fn look_alike() {
        // Updates every N steps without accumulating: an alternating schedule.
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("accum_steps", "n_critic"))]).is_empty());
    }
}
