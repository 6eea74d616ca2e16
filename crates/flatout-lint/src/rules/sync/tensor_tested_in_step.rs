//! # tensor-tested-in-step
//!
//! ## What it detects
//! `if torch.isnan(loss):`, `while error > limit:` or another test of a tensor's value runs at every step of a training loop.
//!
//! ## Why it is slow
//! To decide the branch, the CPU must wait until the GPU has computed the value. The GPU then idles until the CPU queues more work.
//!
//! ## Example
//! ```python
//! if torch.isnan(loss):
//!     raise RuntimeError("the loss is NaN")
//! ```
//!
//! ## Use instead
//! ```python
//! if step % 100 == 0 and torch.isnan(loss):
//!     raise RuntimeError("the loss is NaN")
//! ```
//!
//! ## Evidence
//! The tested expression is certainly a tensor (a result of `torch`, a comparison with one, or what `.backward()` is called on).
//!
//! ## Fix
//! Decide on the GPU (`torch.where`, `clip_grad_norm_`, a `GradScaler`, which skips bad steps itself), or test every N steps.
//!
//! ## When it is wrong
//! The tensor is on the CPU, or a bad step must be stopped immediately.
//!
//! ## References
//! PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization".
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 训练循环的每一步都判断张量的值：`if torch.isnan(loss):`、`while error > limit:` 等。
//! ## 为什么慢
//! 为了决定分支，CPU 必须等 GPU 算出该值；之后 CPU 继续时 GPU 又闲着。
//! ## 证据
//! 判断的对象肯定是张量（`torch` 的结果、其比较结果，或被调用 `.backward()` 的对象）。
//! ## 怎么改
//! 在设备上决定（`torch.where`、`clip_grad_norm_`、会自行跳过坏步的 `GradScaler`），或每若干步判断一次。
//! ## 何时不成立
//! 张量在 CPU 上；错误的一步必须马上停止，值得等待。
//! ## 参考
//! PyTorch 性能调优指南“Avoid unnecessary CPU-GPU synchronization”。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "tensor-tested-in-step";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    // Tests are looked at through the calls that are hot: an `if` without any call or tensor in it cannot fire.
    let mut seen = Vec::new();
    for (call, hot) in cuda_step_calls(project, module) {
        if hot != Hot::Step {
            continue;
        }
        for above in call.ancestors().take_while(|above| above.as_function().is_none()) {
            if seen.contains(&above.id) {
                break;
            }
            seen.push(above.id);
            for test in tests(above) {
                if is_tensor_test(test) && above.hot() == Some(Hot::Step) {
                    tell(test, report);
                }
            }
        }
    }
}

fn tests(code: Code<'_>) -> Vec<Code<'_>> {
    match code.kind() {
        Kind::If(clauses) => clauses
            .iter()
            .filter_map(|(test, _)| test.map(|test| code.at(test)))
            .collect(),
        _ => Vec::new(),
    }
}

fn is_tensor_test(test: Code<'_>) -> bool {
    match test.kind() {
        Kind::Not(inner) => is_tensor_test(test.at(*inner)),
        Kind::Logical(parts) => parts.iter().any(|part| is_tensor_test(test.at(*part))),
        Kind::Compare {
            left,
            operators,
            comparators,
        } => {
            let by_value = operators.iter().all(|one| {
                !matches!(
                    one,
                    Operator::Is | Operator::IsNot | Operator::In | Operator::NotIn
                )
            });
            let none = comparators
                .iter()
                .any(|id| matches!(test.at(*id).kind(), Kind::None));
            by_value && !none && test.at(*left).is_device_tensor()
        }
        Kind::Call { .. } => test.is_device_tensor(),
        _ => false,
    }
}

fn tell(test: Code<'_>, report: &mut Report<'_>) {
    let text = test.brief();
    let found = report.at(
        test,
        message!(en: "testing `{text}` makes the CPU wait for the GPU at every step", zh: "判断 `{text}` 使 CPU 在每一步都等待 GPU"),
    );
    add_wait_note(found, test);
    found.advice(message!(
        en: "decide on the GPU (`torch.where`, a GradScaler), or test every N steps",
        zh: "在设备上判断（`torch.where`、GradScaler），或每隔若干步检查一次"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel.cuda()\nfor x in loader:\n    loss = model(x)\n    if torch.isnan(loss):\n        skip(x)\n    loss.backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert_eq!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("torch.isnan(loss)", "loss > 10"))]
            )
            .len(),
            1
        );
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("torch.isnan(loss)", "epoch > 10"))]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        for test in [
            "loss is None",
            "torch.is_tensor(loss)",
            "loss.dim() > 1",
            "torch.cuda.is_available()",
        ] {
            assert!(
                findings_of(ID, &[("train.py", &FIRES.replace("torch.isnan(loss)", test))]).is_empty(),
                "{test}"
            );
        }
    }
}
