//! # scaler-with-bf16
//!
//! ## What it detects
//! The program uses a `GradScaler`, but all of its autocasts are bf16.
//!
//! ## Why it is slow
//! bf16 has the range of fp32, so nothing needs scaling. The scaler still multiplies, divides and checks every gradient for
//! infinities, and this check makes the CPU wait for the GPU at every step.
//!
//! ## Example
//! ```python
//! scaler = torch.amp.GradScaler("cuda")
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! scaler.scale(loss).backward()
//! scaler.step(optimizer)
//! ```
//!
//! ## Use instead
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! optimizer.step()
//! ```
//!
//! ## Evidence
//! Every autocast of the program uses `torch.bfloat16`, and the scaler is not disabled.
//!
//! ## Fix
//! Remove the scaler, or pass `enabled=False`.
//!
//! ## Fix safety
//! `--fix --unsafe` adds `enabled=False`, which turns the scaler's calls into no-ops. It is unsafe because steps with infinite
//! gradients are then no longer skipped.
//!
//! ## When it is wrong
//! The dtype is chosen elsewhere, and some runs use fp16: such programs are not reported, because the dtype is not a constant.
//!
//! ## References
//! PyTorch documentation, "Automatic Mixed Precision package: Gradient Scaling".
//! <https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling>
//!
//! ---
//! ## 检测什么
//! 程序中每个 autocast 都是 bf16，却使用了 `GradScaler`。
//! ## 为什么慢
//! bf16 的范围与 fp32 相同：不需要缩放。缩放器仍要乘、除并检查每个梯度是否为无穷，而这个检查让 CPU 每步都等 GPU。
//! ## 证据
//! 程序的每个 autocast 都写明 `torch.bfloat16`，且缩放器没有关闭。
//! ## 怎么改
//! 去掉 scaler，或传入 `enabled=False`。
//! ## 修改是否安全
//! `--fix --unsafe` 会加上 `enabled=False`，scaler 的调用随之不起作用。之所以不安全，是因为梯度为无穷大的步不再被跳过。
//! ## 何时不成立
//! 类型在别处选择，有些运行使用 fp16：这样的程序不在此列，因为类型不是常量。
//! ## 参考
//! PyTorch 文档“Automatic Mixed Precision package: Gradient Scaling”。
//! <https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling>

use super::autocast_around_backward::AUTOCAST;
use crate::rules::prelude::*;

pub const ID: &str = "scaler-with-bf16";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

const SCALERS: [&str; 3] = [
    "torch.cuda.amp.GradScaler",
    "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.calls_one_of(&SCALERS) || call.keyword("enabled").is_some() || call.splats() {
            continue;
        }
        let casts: Vec<Code<'_>> = project
            .program_calls(module)
            .filter(|other| other.calls_one_of(&AUTOCAST))
            .collect();
        if casts.is_empty() || !casts.iter().all(|cast| is_bf16(*cast)) {
            continue;
        }
        let found = report.at(
            call,
            message!(
                en: "GradScaler is used, but every autocast in the program is bf16, which does not need it",
                zh: "使用了 GradScaler，但程序里的 autocast 都是 bf16，并不需要它"
            ),
        );
        let say = message!(en: "disable it with `enabled=False`, or remove it", zh: "关闭它（`enabled=False`）或删除它");
        match call.set_keyword("enabled", "False") {
            Some(edit) => found.unsafe_fix(vec![edit], say),
            None => found.advice(say),
        };
    }
}

fn is_bf16(cast: Code<'_>) -> bool {
    let dtype = cast.keyword("dtype").or_else(|| cast.positional(1));
    dtype.is_some_and(|dtype| dtype.qualified().is_some_and(|name| name == "torch.bfloat16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nscaler = torch.amp.GradScaler('cuda')\nfor x in loader:\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n        loss = model(x)\n    scaler.scale(loss).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        assert!(edits_of(ID, FIRES).contains("GradScaler('cuda', enabled=False)"));
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("bfloat16", "float16"))]).is_empty());
        assert!(
            findings_of(
                ID,
                &[(
                    "train.py",
                    &FIRES.replace("('cuda')\nfor", "('cuda', enabled=fp16)\nfor")
                )]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        // The type is an option: fp16 runs need the scaler.
        assert!(
            findings_of(
                ID,
                &[("train.py", &FIRES.replace("torch.bfloat16", "args.dtype"))]
            )
            .is_empty()
        );
    }
}
